#include "affpcl/output/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/mixed/agent_law.h"
#include "affpcl/mixed/family.h"
#include "affpcl/output/fit_headline.h"
#include "affpcl/output/fit_json-inl.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "affpcl-model";

Json lower(const std::vector<double>& cov, std::size_t d) {  // row by row, up to the diagonal
  Json list = Json::array();
  for (std::size_t r = 0; r < d && !cov.empty(); ++r)
    for (std::size_t c = 0; c <= r; ++c) list.push_back(cov[r * d + c]);
  return list;
}

bool diagonal(const std::vector<double>& D, std::size_t d) {
  for (std::size_t j = 0; j < d * d; ++j)
    if (j % (d + 1) != 0 && D[j] != 0) return false;
  return true;
}

// A covariance: its diagonal where all else is 0, else its rows.
Json covariance_json(const std::vector<double>& D, std::size_t d) {
  Json list = Json::array();
  for (std::size_t r = 0; r < d; ++r)
    if (diagonal(D, d)) {
      list.push_back(D[r * d + r]);
    } else {
      const auto row = D.begin() + static_cast<std::ptrdiff_t>(r * d);
      list.push_back(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(d)));
    }
  return list;
}

Json forms_json(const std::vector<CentreForm>& forms) {
  Json list = Json::array();
  for (const CentreForm& f : forms) {
    const std::size_t d = f.x.size();
    list.push_back({{"spread", to_text(f.covariance)},
                    {"weight", f.weight},
                    {"x", f.x},
                    {"cov", lower(f.cov, d)},
                    {"D", covariance_json(f.D, d)},
                    {"s2", f.s2}});
    if (std::any_of(f.D_cov.begin(), f.D_cov.end(), [](double v) { return v != 0; }))
      list.back()["D_cov"] = lower(f.D_cov, d);
  }
  return list;
}

Json to_json(const LinearModel& m, std::size_t d) {
  Json j{{"x", m.x}};
  if (!m.se.empty()) j["se"] = m.se;
  if (!std::isnan(m.s2)) j["s2"] = m.s2;
  if (!m.cov.empty()) j["cov"] = lower(m.cov, d);
  if (const NearCovariance& near = m.near_cov; !near.weights.empty())
    j["near_cov"] = {
        {"scale", near.scale}, {"weights", near.weights}, {"directions", near.directions}};
  return j;
}

Json family_json(const Model& model) {
  const Encoding& e = model.encoding;
  Json family{{"name", to_text(e.family)},
              {"psi", model.psi},
              {"log_likelihood", model.log_likelihood},
              {"parameters", model.parameters},
              {"common", e.common}};
  if (!model.forms.empty()) {
    family["approximation"] = model.variational ? "variational" : "laplace";
    family["forms"] = forms_json(model.forms);
  }
  if (!e.row_weight.empty()) family["row_weight"] = e.row_weight;
  if (!e.trials.empty()) family["trials"] = e.trials;
  if (!e.offset.empty()) {
    family["offset"] = e.offset;
    family["offset_scale"] = e.offset_scale == OffsetScale::kLink ? "link" : "response";
  }
  return family;
}

Json levels_json(const Model& model) {
  const Encoding& e = model.encoding;
  return {{"column", e.level_column()},
          {"how", e.within.empty() ? "crossed" : "within"},
          {"common", e.common},
          {"variance", model.levels.variance},
          {"log_likelihood", model.log_likelihood},
          {"parameters", model.parameters},
          {"names", model.levels.names},
          {"effects", model.levels.effect},
          {"se", model.levels.se}};
}

Json reading_json(const ReadOptions& o) {
  return {{"sep", o.sep},
          {"decimal", std::string(name_of(o.decimal))},
          {"encoding", std::string(name_of(o.encoding))},
          {"na", o.na},
          {"skip", o.skip},
          {"comment", o.comment},
          {"decimal_found",
           o.decimal_before == '\0' ? std::string() : std::string(1, o.decimal_before)}};
}

Json to_json(const ByKind<double>& weights) {
  return {{"personalised", weights[0]}, {"alone", weights[1]}, {"pooled", weights[2]}};
}

Json to_json(const Losses& l) {
  return {{"given", l.chosen},
          {"personalised", l.personalised},
          {"alone", l.independent},
          {"pooled", l.pooled}};
}

// Reads keys and says which one is wrong.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}
  [[noreturn]] void damaged(const std::string& key) const {
    throw BadInput(fmt::format(
        "{} is damaged: '{}' is missing or not what it should be; fit it again", path_, key));
  }
  template <class T>
  T get(const Json& at, const char* key) const {
    try {
      return at.get<T>(key);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{} is damaged: {}; fit it again", path_, e.what()));
    }
  }
  std::vector<double> numbers(const Json& at, const char* key, std::size_t size) const {
    std::vector<double> v = get<std::vector<double>>(at, key);
    if (v.size() != size) damaged(key);
    for (double x : v)
      if (!std::isfinite(x)) damaged(key);
    return v;
  }
  std::vector<double> covariance(const Json& at, const char* key, std::size_t d) const {
    const std::vector<double> list = numbers(at, key, d * (d + 1) / 2);
    std::vector<double> cov(d * d);
    for (std::size_t r = 0, k = 0; r < d; ++r)
      for (std::size_t c = 0; c <= r; ++c, ++k) cov[r * d + c] = cov[c * d + r] = list[k];
    return cov;
  }
  // As covariance_json() writes it.
  std::vector<double> random_effects(const Json& at, const char* key, std::size_t d) const {
    std::vector<double> D(d * d);
    if (const Json::Array& listed = list(at, key); !listed.empty() && listed[0].is_array()) {
      const auto rows = get<std::vector<std::vector<double>>>(at, key);
      if (rows.size() != d) damaged(key);
      for (std::size_t i = 0; i < d; ++i) {
        if (rows[i].size() != d) damaged(key);
        std::copy(rows[i].begin(), rows[i].end(), D.begin() + static_cast<std::ptrdiff_t>(i * d));
      }
    } else {
      const std::vector<double> diagonal = numbers(at, key, d);
      for (std::size_t i = 0; i < d; ++i) D[i * d + i] = diagonal[i];
    }
    return D;
  }
  Covariance spread(const Json& at) const {
    const auto text = get<std::string>(at, "spread");
    const Covariance covariance = text == "full"       ? Covariance::kFull
                                  : text == "diagonal" ? Covariance::kDiagonal
                                                       : Covariance::kScalar;
    if (text != to_text(covariance)) damaged("spread");
    return covariance;
  }
  std::vector<CentreForm> forms(const Json& at, std::size_t d) const {
    std::vector<CentreForm> all;
    if (!at.contains("forms")) return all;
    for (const Json& f : list(at, "forms")) {
      CentreForm form;
      form.covariance = spread(f);
      form.weight = get<double>(f, "weight");
      form.x = numbers(f, "x", d);
      form.cov = covariance(f, "cov", d);
      form.D = random_effects(f, "D", d);
      form.D_cov = f.contains("D_cov") ? covariance(f, "D_cov", d) : std::vector<double>(d * d);
      form.s2 = get<double>(f, "s2");
      if (!(form.weight >= 0) || !(form.s2 >= 0)) damaged("forms");
      all.push_back(std::move(form));
    }
    return all;
  }
  NearCovariance near_covariance(const Json& at, std::size_t d) const {
    NearCovariance near{.scale = get<double>(at, "scale"),
                        .weights = get<std::vector<double>>(at, "weights"),
                        .directions = {}};
    near.directions = numbers(at, "directions", near.weights.size() * d);
    if (!std::isfinite(near.scale) || near.weights.empty()) damaged("near_cov");
    return near;
  }
  LinearModel model(const Json& at, std::size_t d) const {
    LinearModel m;
    m.x = numbers(at, "x", d);
    if (at.contains("se")) m.se = numbers(at, "se", d);
    m.s2 = at.contains("s2") ? get<double>(at, "s2") : std::nan("");
    if (at.contains("cov")) m.cov = covariance(at, "cov", d);
    if (at.contains("near_cov")) m.near_cov = near_covariance(object(at, "near_cov"), d);
    return m;
  }
  template <class Enum>
  Enum named(const std::string& text, const char* key) const {
    for (std::size_t k = 0; k < EnumNames<Enum>::all.size(); ++k)
      if (EnumNames<Enum>::all[k] == text) return static_cast<Enum>(k);
    damaged(key);
  }
  ReadOptions reading(const Json& at) const {
    const Json& json = object(at, "reading");
    ReadOptions o;
    o.sep = get<std::string>(json, "sep");
    o.decimal = named<DecimalMark>(get<std::string>(json, "decimal"), "decimal");
    o.encoding = named<TextEncoding>(get<std::string>(json, "encoding"), "encoding");
    o.na = get<std::string>(json, "na");
    o.skip = get<std::int64_t>(json, "skip");
    o.comment = get<std::string>(json, "comment");
    const auto found = get<std::string>(json, "decimal_found");
    if (found.size() > 1) damaged("decimal_found");
    if (!found.empty()) o.decimal_before = found[0];
    return o;
  }
  const Json& object(const Json& at, const char* key) const {
    if (!at.contains(key) || !at[key].is_object()) damaged(key);
    return at[key];
  }
  const Json::Array& list(const Json& at, const char* key) const {
    if (!at.contains(key) || !at[key].is_array()) damaged(key);
    return at[key].elements();
  }

 private:
  const std::string& path_;
};

// What a generalised model has beside a linear one.
void read_family(const Reader& r, const Json& at, Model& model) {
  Encoding& e = model.encoding;
  const std::optional<Family> family = family_named(r.get<std::string>(at, "name"));
  if (!family) r.damaged("family");
  e.family = *family;
  model.psi = r.get<std::vector<double>>(at, "psi");
  model.log_likelihood = r.get<double>(at, "log_likelihood");
  model.parameters = r.get<std::size_t>(at, "parameters");
  e.common = r.get<std::vector<std::string>>(at, "common");
  model.variational = at.get_or<std::string>("approximation", "laplace") == "variational";
  const auto column = [&](const char* key, std::string& to) {
    if (at.contains(key)) to = r.get<std::string>(at, key);
  };
  column("row_weight", e.row_weight), column("trials", e.trials), column("offset", e.offset);
  if (at.contains("offset_scale") && r.get<std::string>(at, "offset_scale") == "response")
    e.offset_scale = OffsetScale::kResponse;
  const std::size_t offsets = e.offsets().size();
  if (offsets > 0 && offsets != (e.family == Family::kMultinomial ? e.classes.size() : 1))
    r.damaged("offset");
  if (e.generalised() &&
      model.psi.size() != Likelihood(e.family, std::max<std::size_t>(e.classes.size(), 2)).extras())
    r.damaged("psi");
}

void read_levels(const Reader& r, const Json& at, Model& model) {
  Encoding& e = model.encoding;
  const auto how = r.get<std::string>(at, "how"), column = r.get<std::string>(at, "column");
  if ((how != "within" && how != "crossed") || column.empty()) r.damaged("levels");
  (how == "within" ? e.within : e.crossed) = column;
  e.common = r.get<std::vector<std::string>>(at, "common");
  model.levels.variance = r.get<double>(at, "variance");
  model.log_likelihood = r.get<double>(at, "log_likelihood");
  if (at.contains("parameters")) model.parameters = r.get<std::size_t>(at, "parameters");
  model.levels.names = r.get<std::vector<std::string>>(at, "names");
  model.levels.effect = r.numbers(at, "effects", model.levels.names.size());
  model.levels.se = r.numbers(at, "se", model.levels.names.size());
}

// The level that an agent lies within.
void read_level(const Reader& r, const Json& at, const LevelModel& levels, AgentModel& agent) {
  const auto level =
      std::find(levels.names.begin(), levels.names.end(), r.get<std::string>(at, "level"));
  if (level == levels.names.end()) r.damaged("level");
  agent.level = static_cast<int>(level - levels.names.begin());
  agent.level_cov = r.numbers(at, "level_cov", agent.channels[0].x.size());
}

Json whole_json(const std::string& text, const std::string& path) {
  try {
    return parse_json(text);
  } catch (const BadJson& e) {
    if (text.find(kFormat) != std::string::npos)
      throw BadInput(fmt::format("{} is damaged ({}); fit it again", path, e.what()));
    throw BadInput(fmt::format("{} is not a model: it is no JSON file ({}); a fit writes one", path,
                               e.what()));
  }
}

}  // namespace

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw BadInput(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string model_json(const Model& model) {
  const Encoding& e = model.encoding;
  const std::size_t d = e.dim();
  Json columns = Json::array(), channels = Json::array(), agents = Json::array();
  for (const Source& s : e.sources) {
    Json c{{"name", s.name}};
    if (!s.levels.empty()) c["levels"] = s.levels;
    if (s.missing != e.missing) c["missing"] = to_text(s.missing);
    if (s.indicator) c["indicator"] = true;
    if (s.dates != DateOrder::kNone) c["dates"] = std::string(name_of(s.dates));
    c["mean"] = s.mean;
    c["sd"] = s.sd;
    columns.push_back(std::move(c));
  }
  for (const ChannelModel& c : model.channels) {
    if (model.solver == SolverKind::kStream) {
      channels.push_back({{"pooled", c.pooled}, {"centre", to_json(c.centre, d)}});
      continue;
    }
    Json tried = Json::array();
    for (const CovarianceTried& t : c.tried)
      tried.push_back({{"spread", t.name},
                       {"log_evidence", t.log_evidence},
                       {"bic", t.bic},
                       {"weight", t.weight}});
    channels.push_back({{"spread", to_text(c.covariance)},
                        {"tried", std::move(tried)},
                        {"converged", c.converged},
                        {"D", covariance_json(c.D, d)},
                        {"s2", c.centre.s2},
                        {"pooled", c.pooled},
                        {"pooled_weight", c.pooled_weight},
                        {"centre", to_json(c.centre, d)}});
    if (c.correlation > 0) channels.back()["correlation"] = c.correlation;
    if (!c.undetermined.empty()) channels.back()["undetermined"] = c.undetermined;
    if (!c.typical_cov.empty()) channels.back()["typical_cov"] = lower(c.typical_cov, d);
    if (!c.forms.empty()) channels.back()["forms"] = forms_json(c.forms);
    if (!c.usual.empty())
      channels.back()["noise_law"] = {{"usual", c.usual}, {"outlying", c.outlying}};
    if (c.parameters == 0) continue;  // the whole model has a log-likelihood instead
    channels.back()["log_likelihood"] = c.log_likelihood;
    channels.back()["parameters"] = c.parameters;
  }
  if (e.generalised() || e.leveled())
    for (std::size_t c = 0; c < model.channels.size(); ++c)
      channels[c]["singular"] = model.channels[c].singular;
  for (const AgentModel& a : model.agents) {
    Json own = Json::array();
    for (const LinearModel& m : a.channels) own.push_back(to_json(m, d));
    agents.push_back({{"name", a.name},
                      {"rows", a.rows},
                      {"model", to_text(a.kind)},
                      {"stacked", to_json(a.stacked)},
                      {"channels", std::move(own)},
                      {"alone", a.independent}});
    if (!a.weights.empty()) agents.back()["weights"] = a.weights;
    if (a.level >= 0) {
      agents.back()["level"] = model.levels.names[static_cast<std::size_t>(a.level)];
      agents.back()["level_cov"] = a.level_cov;
    }
  }
  Json all{{"format", kFormat},
           {"version", kModelVersion},
           {"about",
            "x and se are coefficients and standard errors of standardised columns, in units "
            "of the target; the centre's cov is that of an agent never seen, whose x is (1 - "
            "pooled_weight) centre + pooled_weight pooled; cov lists lower "
            "triangles, row by row; alone and pooled are the x of the models that were learnt "
            "without the others and for all at once; where near_cov stands for cov it is scale "
            "typical_cov + sum_k weights[k] v_k v_k', directions listing v_1, v_2, ...; forms are "
            "what an agent "
            "that joins needs: x_c and its covariance for a known D, D with the covariance of its "
            "diagonal, "
            "and the noise; within is the covariance of standardised columns within agents"},
           {"provenance",
            {{"version", model.version},
             {"command", model.command},
             {"files", model.files},
             {"rows", model.rows},
             {"centre_agents", model.centre_agents},
             {"centre_rows", model.centre_rows},
             {"seed", model.seed}}},
           {"solver", to_text(model.solver)},
           {"method", model.method},
           {"task", e.task()},
           {"target", e.target},
           {"classes", e.classes},
           {"outcomes", e.outcomes},
           {"noise", model.noise},
           {"agent_column", e.agent_column},
           {"missing", to_text(e.missing)},
           {"reading", reading_json(e.reading)},
           {"columns", std::move(columns)},
           {"coefficients", e.names()},
           {"channels", std::move(channels)},
           {"agents", std::move(agents)}};
  if (model.privacy) all["privacy"] = privacy_json(*model.privacy);
  if (e.generalised() || !e.row_weight.empty() || !e.offset.empty())
    all["family"] = family_json(model);
  if (e.leveled()) all["levels"] = levels_json(model);
  if (model.joined) all["joined"] = true;
  if (!model.within.empty()) all["within"] = lower(model.within, d);
  if (model.solver == SolverKind::kExact) all["estimate"] = model.estimate();
  return pretty(all);
}

Model read_model(const std::string& given) {
  std::error_code error;
  std::string path = given;
  if (fs::is_directory(given, error)) {  // a federation's centre has no model.json
    path = (fs::path(given) / "model.json").string();
    const std::string centre = (fs::path(given) / "centre.json").string();
    if (!fs::exists(path, error) && fs::exists(centre, error)) path = centre;
  }
  return parse_model(content_of(path), path);
}

Model parse_model(const std::string& text, const std::string& path) {
  const Json json = whole_json(text, path);
  if (!json.contains("format") || json["format"] != kFormat)
    throw BadInput(fmt::format("{} is not a model: its format is not \"{}\"", path, kFormat));
  const Reader r(path);
  if (const int version = r.get<int>(json, "version"); version != kModelVersion)
    throw BadInput(fmt::format(
        "{} has format version {}, and this affpcl reads version {}: {}", path, version,
        kModelVersion,
        version > kModelVersion ? "use the newer affpcl that wrote it" : "fit it again"));
  Model model;
  Encoding& e = model.encoding;
  const Json& provenance = r.object(json, "provenance");
  model.version = r.get<std::string>(provenance, "version");
  model.command = r.get<std::string>(provenance, "command");
  model.files = r.get<std::vector<std::string>>(provenance, "files");
  model.rows = r.get<std::size_t>(provenance, "rows");
  model.seed = r.get<std::uint64_t>(provenance, "seed");
  if (provenance.contains("centre_agents")) {
    model.centre_agents = r.get<std::size_t>(provenance, "centre_agents");
    model.centre_rows = r.get<std::size_t>(provenance, "centre_rows");
  }
  model.joined = json.contains("joined") && r.get<bool>(json, "joined");
  e.target = r.get<std::string>(json, "target");
  e.classes = r.get<std::vector<std::string>>(json, "classes");
  if (e.classes.size() == 1) r.damaged("classes");
  e.outcomes = r.get<std::vector<std::string>>(json, "outcomes");
  if (json.contains("family")) read_family(r, json["family"], model);
  if (json.contains("levels")) read_levels(r, json["levels"], model);
  e.values = r.get<std::string>(json, "task") == "td";
  const std::string solver = r.get<std::string>(json, "solver");
  model.solver = solver == "stream" ? SolverKind::kStream : SolverKind::kExact;
  if (solver != to_text(model.solver)) r.damaged("solver");
  // Files without the key are of versions that had no choice.
  model.restricted = model.solver == SolverKind::kExact && !e.generalised();
  if (json.contains("estimate")) {
    const auto estimate = r.get<std::string>(json, "estimate");
    model.restricted = estimate == "reml";
    if (estimate != model.estimate()) r.damaged("estimate");
  }
  model.method = r.get<std::string>(json, "method");
  const bool stream = model.solver == SolverKind::kStream;
  e.agent_column = r.get<std::string>(json, "agent_column");
  const std::string missing = r.get<std::string>(json, "missing");
  e.missing = r.named<Missing>(missing, "missing");
  e.reading = r.reading(json);
  for (const Json& c : r.list(json, "columns")) {
    Source s{.name = r.get<std::string>(c, "name"),
             .levels = {},
             .mean = {},
             .sd = {},
             .missing = e.missing};
    if (c.contains("missing"))
      s.missing = r.named<Missing>(r.get<std::string>(c, "missing"), "missing");
    s.indicator = c.contains("indicator") && r.get<bool>(c, "indicator");
    if (c.contains("dates")) s.dates = r.named<DateOrder>(r.get<std::string>(c, "dates"), "dates");
    if (c.contains("levels")) s.levels = r.get<std::vector<std::string>>(c, "levels");
    if (s.levels.size() == 1) r.damaged("levels");
    s.mean = r.numbers(c, "mean", s.width());
    s.sd = r.numbers(c, "sd", s.width());
    for (double v : s.sd)
      if (!(v > 0)) r.damaged("sd");
    e.sources.push_back(std::move(s));
  }
  const std::size_t d = e.dim();
  if (json.contains("family"))
    model.forms =
        r.forms(json["family"],
                Likelihood(e.family, std::max<std::size_t>(e.classes.size(), 2)).predictors() * d);
  if (json.contains("within")) model.within = r.covariance(json, "within", d);
  if (r.get<std::vector<std::string>>(json, "coefficients") != e.names()) r.damaged("coefficients");
  for (const Json& c : r.list(json, "channels")) {
    ChannelModel channel;
    channel.pooled = r.numbers(c, "pooled", d);
    channel.centre = r.model(r.object(c, "centre"), d);
    if (stream) {
      model.channels.push_back(std::move(channel));
      continue;
    }
    channel.covariance = r.spread(c);
    for (const Json& t : r.list(c, "tried"))
      channel.tried.push_back({r.get<std::string>(t, "spread"), r.get<double>(t, "log_evidence"),
                               r.get<double>(t, "bic"),
                               t.contains("weight") ? r.get<double>(t, "weight") : 0});
    channel.converged = r.get<bool>(c, "converged");
    if (c.contains("pooled_weight")) channel.pooled_weight = r.get<double>(c, "pooled_weight");
    if (c.contains("parameters")) {
      channel.log_likelihood = r.get<double>(c, "log_likelihood");
      channel.parameters = r.get<std::size_t>(c, "parameters");
    }
    if (c.contains("undetermined"))
      for (const std::size_t j : r.get<std::vector<std::size_t>>(c, "undetermined"))
        j < d ? channel.undetermined.push_back(j) : r.damaged("undetermined");
    if (c.contains("correlation")) channel.correlation = r.get<double>(c, "correlation");
    if (c.contains("typical_cov")) channel.typical_cov = r.covariance(c, "typical_cov", d);
    if (c.contains("singular")) channel.singular = r.get<bool>(c, "singular");
    if (channel.centre.cov.empty()) r.damaged("cov");
    channel.D = r.random_effects(c, "D", d);
    channel.forms = r.forms(c, d);
    if (c.contains("noise_law")) {
      const Json& law = r.object(c, "noise_law");
      channel.usual = r.numbers(law, "usual", LawGrid::kNoises);
      channel.outlying = r.numbers(law, "outlying", LawGrid::kNoises);
    }
    model.channels.push_back(std::move(channel));
  }
  if (model.channels.size() != (stream && !e.outcomes.empty() ? 1 : e.channels()))
    r.damaged("channels");
  const std::size_t k = e.outcomes.size();
  model.noise = r.numbers(json, "noise", stream ? 0 : k * k);
  std::set<std::string> names;
  for (const Json& a : r.list(json, "agents")) {
    AgentModel agent;
    agent.name = r.get<std::string>(a, "name");
    agent.rows = r.get<std::size_t>(a, "rows");
    const std::string kind = r.get<std::string>(a, "model");
    agent.kind = kind == "alone"    ? Kind::kIndependent
                 : kind == "pooled" ? Kind::kPooled
                                    : Kind::kPersonalised;
    if (kind != to_text(agent.kind)) r.damaged("model");
    agent.stacked = vertex(agent.kind);
    if (a.contains("stacked")) {
      const Json& parts = r.object(a, "stacked");
      agent.stacked = {r.get<double>(parts, "personalised"), r.get<double>(parts, "alone"),
                       r.get<double>(parts, "pooled")};
    }
    for (const Json& m : r.list(a, "channels")) agent.channels.push_back(r.model(m, d));
    if (agent.channels.size() != model.channels.size()) r.damaged("channels");
    for (std::size_t c = 0; c < agent.channels.size(); ++c)
      if (!agent.channels[c].near_cov.weights.empty() && model.channels[c].typical_cov.empty())
        r.damaged("typical_cov");
    agent.independent = r.get<std::vector<std::vector<double>>>(a, "alone");
    if (k > 0) agent.weights = r.numbers(a, "weights", k);
    if (a.contains("level")) read_level(r, a, model.levels, agent);
    if (!names.insert(agent.name).second) r.damaged("name");
    model.agents.push_back(std::move(agent));
  }
  if (model.centre_agents == 0)  // a file of an older version
    model.centre_agents = model.agents.size(), model.centre_rows = model.rows;
  return model;
}

namespace {

void add_class_scores(const FitResult& result, Json& score) {
  score["accuracy"] = to_json(result.accuracy);
  score["brier"] = to_json(result.brier);
  score["auc"] = to_json(result.classes.auc);
  score["calibration_error"] = to_json(result.classes.calibration_error);
  score["calibration"] = Json::array();
  for (const CalibrationBin& b : result.classes.calibration)
    score["calibration"].push_back(
        {{"share", b.share}, {"predicted", b.predicted}, {"observed", b.observed}});
  const std::size_t classes = result.model.encoding.classes.size();
  const std::vector<double>& confusion = result.classes.confusion;
  if (confusion.size() != classes * classes || confusion.empty()) return;
  score["confusion"] = Json::array();
  for (auto row = confusion.begin(); row != confusion.end();
       row += static_cast<std::ptrdiff_t>(classes))
    score["confusion"].push_back(
        std::vector<double>(row, row + static_cast<std::ptrdiff_t>(classes)));
}

void add_predictions(const PredictionCounts& p, Json& score) {
  if (p.cells == 0) return;
  score["predicted"] = {{"lo", p.lo}, {"hi", p.hi}, {"cells", p.cells}, {"rows", p.grid}};
  score["residuals"] = {{"from", p.from}, {"width", p.width}, {"rows", p.residuals}};
}

// Of test rows of agents that no row that was learnt from has.
Json unseen_json(const FitResult& result, const char* measure) {
  const UnseenScore& u = result.unseen;
  Json unseen{{"agents", u.agents}, {"rows", u.rows}};
  if (!result.model.encoding.outcomes.empty()) return unseen;
  unseen[measure] = u.loss;
  if (!result.model.encoding.classes.empty())
    unseen["accuracy"] = u.accuracy, unseen["brier"] = u.brier;
  return unseen;
}

}  // namespace

std::string fit_summary_json(const FitResult& result) {
  const Model& model = result.model;
  const bool classify = !model.encoding.classes.empty();
  Json spec = spec_json(model.encoding, model.files);
  spec["solver"] = to_text(model.solver);
  spec["method"] = model.method;
  Json all{{"manifest", manifest(std::move(spec), model.seed, model.command, result.threads,
                                 result.seconds, result.complete)},
           {"headline", headline(result)},
           {"rows", model.rows},
           {"columns", model.encoding.dim() - 1},
           {"notes", spell_options(result.notes, OptionStyle::kKey)}};
  all["manifest"]["ranks"] = result.ranks;
  if (model.privacy) all["privacy"] = privacy_json(*model.privacy);
  if (model.joined)
    all["joined"] = {{"centre_agents", model.centre_agents},
                     {"centre_rows", model.centre_rows},
                     {"pooled", "the centre's model of an agent never seen"}};
  if (result.ranks > 1)
    all["manifest"]["communication"] = {{"bytes_sent", result.bytes_sent},
                                        {"seconds", result.communication_seconds}};
  Json spreads = Json::array();
  for (const ChannelModel& c : model.channels) spreads.push_back(to_text(c.covariance));
  if (model.solver == SolverKind::kExact) all["spread"] = std::move(spreads);
  if (model.encoding.leveled())
    all["levels"] = {{"column", model.encoding.level_column()},
                     {"how", model.encoding.within.empty() ? "crossed" : "within"},
                     {"count", model.levels.names.size()},
                     {"sd", std::sqrt(model.levels.variance)}};
  if (!result.scored) {
    all["score"] = nullptr;
    all["agents"] = Json::array();
    for (const AgentModel& a : model.agents)
      all["agents"].push_back(
          {{"agent", a.name}, {"rows", a.rows}, {"given", to_text(a.kind)}, {"score", nullptr}});
    return pretty(all);
  }
  const bool log_loss = classify || model.encoding.family == Family::kBinomial;
  const char* const measure = model.encoding.values      ? "td_error"
                              : log_loss                 ? "log_loss"
                              : model.encoding.numeric() ? "mse"
                                                         : "deviance";
  Json score{{"measure", measure},
             {"how", how_held_out(result)},
             {"repeats", model.solver == SolverKind::kStream ? 1 : result.repeats}};
  score["level"] = result.level;
  score[measure] = to_json(result.loss);
  if (classify) add_class_scores(result, score);
  add_predictions(result.predictions, score);
  if (model.encoding.numeric() && !model.encoding.values) score["r2"] = to_json(result.r2);
  score["gain"] = {{"mean", result.gain.mean}, {"lo", result.gain.lo}, {"hi", result.gain.hi}};
  if (result.unseen.rows > 0) score["unseen"] = unseen_json(result, measure);
  all["score"] = std::move(score);
  all["verdicts"] = {{"gained", result.gained}, {"even", result.even}, {"lost", result.lost}};
  all["expected_to_gain"] = result.expect_gain;
  Json agents = Json::array();
  for (std::size_t i = 0; i < result.agents.size(); ++i) {
    const AgentScore& s = result.agents[i];
    Json a{{"agent", model.agents[i].name},
           {"rows", model.agents[i].rows},
           {"score", to_json(s.loss)}};
    if (!result.held_out.files.empty()) a["test_rows"] = s.scored_rows;
    if (classify) a["accuracy"] = to_json(s.accuracy), a["brier"] = to_json(s.brier);
    if (!classify) a["variance"] = s.variance;
    a["gain"] = {{"mean", s.gain.mean}, {"lo", s.gain.lo}, {"hi", s.gain.hi}};
    a["probability"] = s.probability;
    a["p"] = 1 - s.probability;
    a["verdict"] = to_text(s.verdict);
    a["given"] = to_text(model.agents[i].kind);
    a["weights"] = to_json(model.agents[i].stacked);
    a["why"] = s.why;
    agents.push_back(std::move(a));
  }
  all["agents"] = std::move(agents);
  return pretty(all);
}

}  // namespace affpcl
