// Differential privacy of one release with Gaussian noise (Balle and Wang 2018, theorem 8): exact, not
// a bound, so that no smaller noise would do.
#pragma once

namespace affpcl {

// The least delta for this epsilon, of noise whose standard deviation is `multiplier` times the
// sensitivity: how far, at most, one row moves what is released, in Euclidean length.
double gaussian_delta(double epsilon, double multiplier);

// The least multiplier for (epsilon, delta).
double gaussian_multiplier(double epsilon, double delta);

// What a discrete Gaussian on `numbers` integers adds to delta over the rounded continuous one, which
// the above is exact for: a bound on the distance of their distributions, sigma in units of the grid.
double discrete_delta(double epsilon, double sigma, double numbers);

}  // namespace affpcl
