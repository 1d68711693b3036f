#include "affpcl/mixed/evidence_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "affpcl/math/dense.h"
#include "affpcl/math/kernels.h"
#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/table/moments.h"

namespace affpcl::mixed {
namespace {

double wave(double x) { return std::sin(12.9 * x) * 1.3; }

Moments some_moments(std::size_t agents, std::size_t d) {
  Moments m(agents, d);
  double at = 0;
  for (std::size_t i = 0; i < agents; ++i) {
    for (std::size_t r = 0; r < 2 + 5 * i; ++r) {  // of the first agents fewer rows than columns
      Vector x(d);
      for (double& v : x) v = wave(at += 1);
      m.add(i, x, wave(at += 1));
    }
    m.wide[i] = 1 + 0.5 * static_cast<double>(i % 3);
  }
  return m;
}

struct Passes {
  Vector W, v, rest, WHW, traces;
};

// Of all agents, `size` at a time.
Passes passes(const Moments& m, std::size_t size, const Matrix& root, bool diagonal, double s2,
              const Matrix& H) {
  const std::size_t d = m.d, dd = d * d, n = m.n;
  Passes out{Vector(n * dd), Vector(n * d), Vector(3 * n), Vector(n * dd), Vector(n)};
  BatchSpace space(d);
  for (std::size_t i = 0; i < n; i += size) {
    const std::size_t count = std::min(size, n - i);
    double rest[kBatch][3];
    first_pass({d, count, m.A.data() + i * dd, m.b.data() + i * d, m.yy.data() + i,
                m.rows.data() + i, m.wide.data() + i, root.data(), diagonal, s2, space.data(),
                out.W.data() + i * dd, out.v.data() + i * d, rest});
    std::copy_n(rest[0], 3 * count, out.rest.data() + 3 * i);
    second_pass({d, count, out.W.data() + i * dd, H.data(), diagonal, space.data(),
                 out.WHW.data() + i * dd, out.traces.data() + i});
  }
  return out;
}

// The same of one agent by inverses: W = A/s2 - A M A/s2^2 with M = L (I + t L'A L/s2)^-1 L' t.
void expect_by_inverses(const Moments& m, std::size_t i, const Matrix& root, bool diagonal,
                        double s2, const Matrix& H, const Passes& got) {
  const std::size_t d = m.d, dd = d * d;
  const Matrix A = A_of(m, i);
  const double t = m.wide[i];
  Matrix K = multiply(root, multiply(A, transposed(root)));
  for (double& v : K.all()) v *= t / s2;
  add_to_diagonal(1, K);
  const Matrix inverse_K = inverse(K);
  const Matrix M = multiply(transposed(root), multiply(inverse_K, root));
  const Matrix AMA = multiply(A, multiply(M, A));
  const Vector b(b_of(m, i).begin(), b_of(m, i).end()), Mb = multiply(M, b), AMb = multiply(A, Mb);
  Matrix W(d, d);
  for (std::size_t j = 0; j < dd; ++j) {
    W.all()[j] = A.all()[j] / s2 - t * AMA.all()[j] / (s2 * s2);
    EXPECT_NEAR(got.W[i * dd + j], W.all()[j], 1e-9) << "W " << j;
  }
  for (std::size_t j = 0; j < d; ++j)
    EXPECT_NEAR(got.v[i * d + j], b[j] / s2 - t * AMb[j] / (s2 * s2), 1e-9) << "v " << j;
  EXPECT_NEAR(got.rest[3 * i], m.yy[i] / s2 - t * dot(b, Mb) / (s2 * s2), 1e-9);
  EXPECT_NEAR(got.rest[3 * i + 1], m.rows[i] * std::log(s2) + Cholesky(K).log_determinant(), 1e-9);
  EXPECT_NEAR(got.rest[3 * i + 2], static_cast<double>(d) - trace(inverse_K), 1e-9);
  const Matrix HW = multiply(H, W), WHW = multiply(W, HW);
  EXPECT_NEAR(got.traces[i], trace(HW), 1e-8);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < d; ++k)
      EXPECT_NEAR(got.WHW[i * dd + j * d + k], diagonal && j != k ? 0 : WHW(j, k), 1e-8);
}

TEST(EvidenceBatch, PassesAreThoseByInversesAndTheSameAloneWithEveryInstructionSet) {
  const std::string before = instruction_set();
  for (const std::string& set : available_instruction_sets()) {
    use_instruction_set(set);
    for (const std::size_t d : {1, 2, 5, 8, 13})
      for (const bool diagonal : {true, false}) {
        SCOPED_TRACE(testing::Message() << set << ": " << d << (diagonal ? " diagonal" : " full"));
        const Moments m = some_moments(13, d);
        Matrix root(d, d), H = Matrix::identity(d);
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t k = 0; k < d; ++k) {
            if (!diagonal || j == k)
              root(j, k) = j == 1 ? 0 : wave(static_cast<double>(j * d + k + 1));
            H(j, k) += 0.1 * wave(static_cast<double>(j + k + 1));
          }
        const double s2 = 0.7;
        const Passes eight = passes(m, kBatch, root, diagonal, s2, H);
        for (std::size_t i = 0; i < m.n; ++i)
          expect_by_inverses(m, i, root, diagonal, s2, H, eight);
        const Passes one = passes(m, 1, root, diagonal, s2, H);
        EXPECT_EQ(one.W, eight.W);
        EXPECT_EQ(one.v, eight.v);
        EXPECT_EQ(one.rest, eight.rest);
        EXPECT_EQ(one.WHW, eight.WHW);
        EXPECT_EQ(one.traces, eight.traces);
      }
  }
  use_instruction_set(before);
}

}  // namespace
}  // namespace affpcl::mixed
