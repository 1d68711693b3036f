// Features for the real-world figure: LeNet-5, trained to tell characters apart on writers that are
// not agents; the 84 numbers of its last hidden layer for the writers that are. Writes features.npy
// and labels.csv (agent, two outcome channels, fold, network), which `affpcl reproduce fig-real
// --data DIR` reads. Several networks are trained from different starts; their rows follow each
// other, and the column `network` tells them apart.
#include <fmt/format.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/data/table.h"

namespace {

using affpcl::BadInput;
using affpcl::Column;
using affpcl::DataTable;

constexpr int kSide = 28, kPixels = kSide * kSide, kFeatures = 84, kFolds = 5;

struct Images {
  torch::Tensor pixels;              // [rows][1][28][28], ink 1
  std::vector<std::int64_t> labels;  // class of each row
  std::vector<int> agent;            // into `names`
  std::vector<std::string> names;
};

// LeCun et al. 1998, with rectifiers and max pooling.
struct LeNet5 : torch::nn::Module {
  explicit LeNet5(std::int64_t classes)
      : conv1(register_module("conv1",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)))),
        conv2(register_module("conv2", torch::nn::Conv2d(6, 16, 5))),
        full1(register_module("full1", torch::nn::Linear(16 * 5 * 5, 120))),
        full2(register_module("full2", torch::nn::Linear(120, kFeatures))),
        last(register_module("last", torch::nn::Linear(kFeatures, classes))) {}
  torch::Tensor features(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return torch::relu(full2(torch::relu(full1(x.flatten(1)))));
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(features(x)); }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear full1, full2, last;
};

// Pixels from the 784 columns of `images`; agents and classes from there too (LEAF), or from
// `labels`.
Images read(const std::string& images, const std::string& labels, const std::string& agent,
            const std::string& label) {
  affpcl::TableOptions text;
  text.text = {agent};
  const DataTable pixels =
      affpcl::read_table(images, labels.empty() ? text : affpcl::TableOptions{});
  const DataTable who = labels.empty() ? pixels : affpcl::read_table(labels, text);
  if (who.rows != pixels.rows)
    throw BadInput(
        fmt::format("{} has {} rows and {} has {}", images, pixels.rows, labels, who.rows));
  std::vector<const std::vector<double>*> columns;
  for (const Column& c : pixels.columns)
    if (c.type == Column::Type::kNumber && c.name != agent && c.name != label)
      columns.push_back(&pixels.numbers(c.name));
  if (columns.size() != kPixels)
    throw BadInput(fmt::format("{} has {} numbers a row, not the {} of a 28 x 28 image", images,
                               columns.size(), kPixels));
  Images out;
  out.pixels = torch::empty({pixels.rows, 1, kSide, kSide});
  float* p = out.pixels.data_ptr<float>();
  double most = 0;
  for (const auto* c : columns) most = std::max(most, *std::max_element(c->begin(), c->end()));
  for (std::int64_t r = 0; r < pixels.rows; ++r)
    for (std::size_t k = 0; k < kPixels; ++k)
      p[static_cast<std::size_t>(r) * kPixels + k] =
          static_cast<float>((*columns[k])[static_cast<std::size_t>(r)] / most);
  if (out.pixels.mean().item<double>() > 0.5) out.pixels = 1 - out.pixels;  // LEAF: white is 1
  const Column& owner = who.column(agent);
  out.names = owner.levels;
  out.agent.assign(owner.codes.begin(), owner.codes.end());
  for (double v : who.numbers(label)) out.labels.push_back(static_cast<std::int64_t>(v));
  return out;
}

// Two outcomes of a character. Of 62 (digits, capitals, small letters): it is a digit; it is a
// letter with a curve. Of 10 digits: it has a loop; it has a curve but no loop.
std::array<int, 2> channels(std::int64_t label, std::int64_t classes) {
  static const std::string kCurved = "BCDGJOPQRSUabcdefghjmnopqrstuy";
  if (classes <= 10) {
    const bool loop = label == 0 || label == 6 || label == 8 || label == 9;
    const bool curve = label == 2 || label == 3 || label == 5;
    return {loop, curve};
  }
  const char letter = label < 10   ? '0'
                      : label < 36 ? static_cast<char>('A' + label - 10)
                                   : static_cast<char>('a' + label - 36);
  return {label < 10, label >= 10 && kCurved.find(letter) != std::string::npos};
}

void train(LeNet5& net, const Images& images, const std::vector<std::int64_t>& rows, int epochs,
           std::mt19937& random) {
  torch::optim::Adam adam(net.parameters(), torch::optim::AdamOptions(1e-3));
  const torch::Tensor labels = torch::tensor(images.labels);
  std::vector<std::int64_t> order = rows;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double loss_sum = 0, right = 0;
    for (std::size_t at = 0; at < order.size(); at += 64) {
      const auto end = std::min(at + 64, order.size());
      const torch::Tensor batch = torch::tensor(
          std::vector<std::int64_t>(order.begin() + static_cast<std::ptrdiff_t>(at),
                                    order.begin() + static_cast<std::ptrdiff_t>(end)));
      adam.zero_grad();
      const torch::Tensor out = net.forward(images.pixels.index_select(0, batch));
      const torch::Tensor wanted = labels.index_select(0, batch);
      const torch::Tensor loss = torch::nn::functional::cross_entropy(out, wanted);
      loss.backward();
      adam.step();
      loss_sum += loss.item<double>() * static_cast<double>(end - at);
      right += out.argmax(1).eq(wanted).sum().item<double>();
    }
    const auto n = static_cast<double>(order.size());
    fmt::print("epoch {}: loss {:.4f}, {:.2f} % right\n", epoch + 1, loss_sum / n, 100 * right / n);
  }
}

void write_npy(const std::filesystem::path& path, const torch::Tensor& matrix) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", matrix.size(0),
                  matrix.size(1));
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  const auto size = static_cast<std::uint16_t>(header.size());
  out.put(static_cast<char>(size & 255)).put(static_cast<char>(size >> 8));
  out << header;
  const torch::Tensor whole = matrix.contiguous();
  out.write(reinterpret_cast<const char*>(whole.data_ptr<float>()),
            static_cast<std::streamsize>(whole.numel() * 4));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

struct Options {
  std::string images, labels, agent = "agent", label = "class", out;
  int agents = 10, epochs = 12, networks = 3;
  unsigned seed = 1;
};

// Every agent's rows dealt out to the folds at random, as evenly as possible.
std::vector<int> deal_folds(const Images& data, const std::vector<std::int64_t>& own, int agents,
                            std::mt19937& random) {
  std::vector<int> fold(own.size());
  for (int i = 0; i < agents; ++i) {
    std::vector<std::size_t> rows;
    for (std::size_t k = 0; k < own.size(); ++k)
      if (data.agent[static_cast<std::size_t>(own[k])] == i) rows.push_back(k);
    std::shuffle(rows.begin(), rows.end(), random);
    for (std::size_t k = 0; k < rows.size(); ++k) fold[rows[k]] = static_cast<int>(k) % kFolds;
  }
  return fold;
}

// Features of the rows `own` by a network trained on `others`. One scale for all features: their
// mean square on `others` is 1.
torch::Tensor features_of(const Images& data, const std::vector<std::int64_t>& others,
                          const std::vector<std::int64_t>& own, const Options& o, int network) {
  const auto seed = o.seed + static_cast<unsigned>(network);
  torch::manual_seed(seed);
  std::mt19937 random(seed);
  LeNet5 net(*std::max_element(data.labels.begin(), data.labels.end()) + 1);
  fmt::print("network {} of {}\n", network + 1, o.networks);
  train(net, data, others, o.epochs, random);
  net.eval();
  const torch::NoGradGuard no_gradients;
  const torch::Tensor raw = net.features(data.pixels.index_select(0, torch::tensor(own)));
  std::vector<std::int64_t> wanted;
  for (std::int64_t r : own) wanted.push_back(data.labels[static_cast<std::size_t>(r)]);
  const double right = net.last(raw).argmax(1).eq(torch::tensor(wanted)).sum().item<double>();
  fmt::print("on the agents: {:.2f} % right\n", 100 * right / static_cast<double>(own.size()));
  const torch::Tensor theirs = net.features(data.pixels.index_select(0, torch::tensor(others)));
  return raw / theirs.square().mean().sqrt();
}

void write_labels(const std::filesystem::path& path, const Images& data,
                  const std::vector<std::int64_t>& own, const std::vector<int>& fold) {
  const std::int64_t classes = *std::max_element(data.labels.begin(), data.labels.end()) + 1;
  std::ofstream table(path);
  table << (classes <= 10 ? "agent,loop,curve,fold,network\n"
                          : "agent,digit,curved_letter,fold,network\n");
  for (std::size_t k = 0; k < fold.size(); ++k) {
    const auto r = static_cast<std::size_t>(own[k % own.size()]);
    const std::array<int, 2> c = channels(data.labels[r], classes);
    table << fmt::format("{},{},{},{},{}\n", data.names[static_cast<std::size_t>(data.agent[r])],
                         c[0], c[1], fold[k], k / own.size());
  }
  if (!table.flush()) throw std::runtime_error("cannot write " + path.string());
}

void make_features(const Options& o) {
  torch::set_num_threads(1);  // sums in one order: the same features every time
  const Images data = read(o.images, o.labels, o.agent, o.label);
  std::vector<std::int64_t> others, own;
  for (std::size_t r = 0; r < data.agent.size(); ++r)
    (data.agent[r] < o.agents ? own : others).push_back(static_cast<std::int64_t>(r));
  if (others.empty())
    throw BadInput(
        fmt::format("all {} writers would be agents: none is left to train on", data.names.size()));
  fmt::print("{} images of {} writers to train on, {} of {} agents\n", others.size(),
             data.names.size() - static_cast<std::size_t>(o.agents), own.size(), o.agents);
  std::mt19937 random(o.seed);
  std::shuffle(own.begin(), own.end(), random);  // files are often in the order of the classes
  std::stable_sort(own.begin(), own.end(), [&](std::int64_t a, std::int64_t b) {
    return data.agent[static_cast<std::size_t>(a)] < data.agent[static_cast<std::size_t>(b)];
  });
  std::vector<torch::Tensor> all;
  std::vector<int> fold;  // by network and row: every network has folds of its own
  for (int network = 0; network < o.networks; ++network) {
    all.push_back(features_of(data, others, own, o, network));
    const std::vector<int> dealt = deal_folds(data, own, o.agents, random);
    fold.insert(fold.end(), dealt.begin(), dealt.end());
  }
  std::filesystem::create_directories(o.out);
  write_npy(std::filesystem::path(o.out) / "features.npy", torch::cat(all));
  write_labels(std::filesystem::path(o.out) / "labels.csv", data, own, fold);
  fmt::print("features.npy and labels.csv in {}\n", o.out);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "LeNet-5 features of handwritten characters, trained on writers that are not agents");
  Options o;
  app.add_option("images", o.images, "28 x 28 images: idx, or LEAF json")->required();
  app.add_option("--with", o.labels, "a CSV of the same rows with agent and class; not for LEAF");
  app.add_option("--agent", o.agent, "the column that names the writer");
  app.add_option("--class", o.label, "the column of the class, 0 to 9 or 0 to 61; LEAF: y");
  app.add_option("--agents", o.agents, "so many writers are agents, the first ones")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--epochs", o.epochs, "epochs of training")->check(CLI::Range(1, 1000));
  app.add_option("--networks", o.networks, "networks, trained from different starts")
      ->check(CLI::Range(1, 100));
  app.add_option("--seed", o.seed, "seed of weights, order and folds");
  app.add_option("--out", o.out, "folder for features.npy and labels.csv")->required();
  app.footer("Example:\n  affpcl_features images-idx3-ubyte --with labels.csv --out features");
  CLI11_PARSE(app, argc, argv);
  try {
    make_features(o);
    return 0;
  } catch (const BadInput& e) {
    fmt::print(stderr, "affpcl_features: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "affpcl_features: {}\n", e.what());
    return 1;
  }
}
