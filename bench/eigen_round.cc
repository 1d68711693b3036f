// A round of AffPCL (exact ratios) as one would write it with Eigen: agents as columns,
// whole-matrix expressions, std::normal_distribution. bench/compare.py runs it beside NumPy.
//
//   usage: eigen_round AGENTS DIM SECONDS      prints the median seconds of a round
#include <Eigen/Dense>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct System {
  System(int n, int d) : gen(1), means(d, n), A(d, d), Phi(d, d), Phi_theta(d, n), x(d, n) {
    const auto draw = [&](auto& m) { m = m.unaryExpr([&](double) { return normal(gen); }); };
    draw(means), draw(A), draw(Phi), draw(Phi_theta);
    means = means.colwise().normalized() * 1.2;
    A = (A.transpose() * A + d * MatrixXd::Identity(d, d)).eval();
    Phi = (Phi.transpose() * Phi + d * MatrixXd::Identity(d, d)).eval();
    half = 0.5 * means.colwise().squaredNorm().transpose();
    x.setZero();
    xc = thetac = VectorXd::Zero(d);
  }

  // (I + eps s s') y in every column
  static MatrixXd noisy(const MatrixXd& s, const MatrixXd& y, double eps) {
    return y + s * (eps * s.cwiseProduct(y).colwise().sum()).asDiagonal();
  }

  void round(double alpha) {
    const auto n = means.cols();
    const MatrixXd s = means + MatrixXd::NullaryExpr(means.rows(), n, [&] { return normal(gen); });
    const MatrixXd b = noisy(s, Phi_theta, 0.5);
    const MatrixXd Axc = noisy(s, (A * xc).replicate(1, n), 1.0);
    const MatrixXd bhat = noisy(s, (Phi * thetac).replicate(1, n), 0.5);
    const MatrixXd gc = Axc - bhat;
    MatrixXd logits = (means.transpose() * s).colwise() - half;  // [environment][sample]
    logits.rowwise() -= RowVectorXd(logits.diagonal());
    const MatrixXd w = logits.array().exp();
    const RowVectorXd Z = w.colwise().sum();  // n times the mean
    const MatrixXd rg = (gc * Z.cwiseInverse().asDiagonal()) * w.transpose();
    x -= alpha * (noisy(s, A * x, 1.0) - b + rg - gc);
    xc -= alpha * (Axc - b).rowwise().mean();
    thetac -= alpha * (bhat - b).rowwise().mean();
  }

  std::mt19937_64 gen;
  std::normal_distribution<double> normal;
  MatrixXd means, A, Phi, Phi_theta, x;
  VectorXd half, xc, thetac;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: eigen_round AGENTS DIM SECONDS\n"), 2;
  System system(std::atoi(argv[1]), std::atoi(argv[2]));
  const double budget = std::atof(argv[3]), begin = processor_seconds();
  system.round(1e-5);
  std::vector<double> times;
  while (processor_seconds() - begin < budget || times.size() < 5) {
    const double start = processor_seconds();
    system.round(1e-5);
    times.push_back(processor_seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  std::printf("%.9g\n", times[times.size() / 2]);
}
