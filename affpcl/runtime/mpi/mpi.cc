#include "affpcl/runtime/mpi/mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace affpcl {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 27;  // numbers of one message: counts are ints

int as_int(std::size_t n) { return static_cast<int>(n); }

class Mpi final : public Processes {
 public:
  Mpi() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int count() const override { return count_; }
  Traffic traffic() const override { return traffic_; }

  void share(std::span<const double> mine, std::span<const std::size_t> counts,
             std::span<double> all) override {
    const Clock clock(*this);
    sizes_.resize(counts.size());
    starts_.resize(counts.size());
    for (std::size_t r = 0, start = 0; r < counts.size(); start += counts[r++]) {
      sizes_[r] = as_int(counts[r]);
      starts_[r] = as_int(start);
    }
    MPI_Allgatherv(mine.data(), as_int(mine.size()), MPI_DOUBLE, all.data(), sizes_.data(),
                   starts_.data(), MPI_DOUBLE, MPI_COMM_WORLD);
    sent(mine.size() * static_cast<std::size_t>(count_ - 1));
  }

  void exchange(std::span<const double> mine, std::span<const std::size_t> to,
                std::span<const std::size_t> from, std::span<double> all) override {
    const Clock clock(*this);
    std::vector<MPI_Request> under_way;
    const auto each = [&](std::span<double> numbers, std::span<const std::size_t> counts, auto f) {
      std::size_t start = 0;
      for (int r = 0; r < count_; ++r) {
        const std::size_t size = counts[static_cast<std::size_t>(r)];
        in_pieces(numbers.subspan(start, size), [&](double* p, int n) {
          under_way.emplace_back();
          f(p, n, MPI_DOUBLE, r, 0, MPI_COMM_WORLD, &under_way.back());
        });
        start += size;
      }
    };
    each(all, from, MPI_Irecv);
    each({const_cast<double*>(mine.data()), mine.size()}, to, MPI_Isend);
    MPI_Waitall(as_int(under_way.size()), under_way.data(), MPI_STATUSES_IGNORE);
    sent(mine.size() - to[static_cast<std::size_t>(rank_)]);
  }

  bool any(bool mine) override {
    const Clock clock(*this);
    int one = mine ? 1 : 0, found = 0;
    MPI_Allreduce(&one, &found, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return found != 0;
  }

  void spread(std::span<double> numbers) override {
    const Clock clock(*this);
    in_pieces(numbers, [](double* p, int n) { MPI_Bcast(p, n, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
    if (first()) sent(numbers.size() * static_cast<std::size_t>(count_ - 1));
  }

  void to_first(std::span<const double> mine,
                FunctionRef<void(std::span<const double>)> take) override {
    const Clock clock(*this);
    if (!first()) {
      send_size(mine.size());
      return send({const_cast<double*>(mine.data()), mine.size()}, 0);
    }
    take(mine);
    std::vector<double> theirs;
    for (int r = 1; r < count_; ++r) {
      theirs.resize(receive_size(r));
      receive(theirs, r);
      take(theirs);
    }
  }

  void from_first(std::span<double> mine, FunctionRef<void(std::span<double>)> fill) override {
    const Clock clock(*this);
    if (!first()) {
      send_size(mine.size());
      return receive(mine, 0);
    }
    fill(mine);
    std::vector<double> theirs;
    for (int r = 1; r < count_; ++r) {
      theirs.resize(receive_size(r));
      fill(theirs);
      send(theirs, r);
    }
  }

 private:
  class Clock {
   public:
    explicit Clock(Mpi& mpi) : mpi_(mpi), start_(std::chrono::steady_clock::now()) {}
    ~Clock() {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
      mpi_.traffic_.seconds += took.count();
    }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

   private:
    Mpi& mpi_;
    std::chrono::steady_clock::time_point start_;
  };

  void sent(std::size_t numbers) {
    traffic_.bytes += static_cast<std::int64_t>(numbers * sizeof(double));
  }
  template <class F>
  static void in_pieces(std::span<double> numbers, F f) {
    for (std::size_t at = 0; at < numbers.size(); at += kMost)
      f(numbers.data() + at, as_int(std::min(kMost, numbers.size() - at)));
  }
  void send(std::span<double> numbers, int to) {
    in_pieces(numbers,
              [&](double* p, int n) { MPI_Send(p, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); });
    sent(numbers.size());
  }
  static void receive(std::span<double> numbers, int from) {
    in_pieces(numbers, [&](double* p, int n) {
      MPI_Recv(p, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }
  static void send_size(std::size_t size) {
    const std::uint64_t n = size;
    MPI_Send(&n, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
  }
  static std::size_t receive_size(int from) {
    std::uint64_t n = 0;
    MPI_Recv(&n, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return n;
  }

  int rank_ = 0, count_ = 1;
  Traffic traffic_;
  std::vector<int> sizes_, starts_;
};

}  // namespace

std::unique_ptr<Processes> mpi_processes() { return std::make_unique<Mpi>(); }

int mpi_processes_here() {
  MPI_Comm here;
  int count = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &count);
  MPI_Comm_free(&here);
  return count;
}

void mpi_abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

}  // namespace affpcl
