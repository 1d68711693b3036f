#include "affpcl/runtime/mpi/mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace affpcl {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;  // bytes of one message: counts are ints

int as_int(std::size_t n) { return static_cast<int>(n); }

class Mpi final : public Processes {
 public:
  Mpi() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    MPI_Type_contiguous(2, MPI_UINT64_T, &fixed_);
    MPI_Type_commit(&fixed_);
    MPI_Op_create(
        [](void* from, void* to, int* count, MPI_Datatype*) {
          for (int k = 0; k < *count; ++k)
            static_cast<Fixed*>(to)[k] += static_cast<Fixed*>(from)[k];
        },
        1, &add_);
  }
  ~Mpi() override {
    MPI_Op_free(&add_);
    MPI_Type_free(&fixed_);
    MPI_Finalize();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int count() const override { return count_; }
  Traffic traffic() const override { return traffic_; }

  void all_gather(ConstBytes mine, Counts counts, Bytes all) override {
    const Clock clock(*this);
    sent(mine.size() * static_cast<std::size_t>(count_ - 1));
    if (all.size() > kLargest) return all_gather_large(mine, counts, all);
    sizes_.resize(counts.size());
    starts_.resize(counts.size());
    for (std::size_t r = 0, start = 0; r < counts.size(); start += counts[r++]) {
      sizes_[r] = as_int(counts[r]);
      starts_[r] = as_int(start);
    }
    MPI_Allgatherv(mine.data(), as_int(mine.size()), MPI_BYTE, all.data(), sizes_.data(),
                   starts_.data(), MPI_BYTE, MPI_COMM_WORLD);
  }

  void all_to_all(ConstBytes mine, Counts to, Counts from, Bytes all) override {
    const Clock clock(*this);
    std::vector<MPI_Request> under_way;
    const auto each = [&](Bytes bytes, Counts counts, auto f) {
      std::size_t start = 0;
      for (int r = 0; r < count_; ++r) {
        const std::size_t size = counts[static_cast<std::size_t>(r)];
        in_pieces(bytes.subspan(start, size), [&](std::byte* p, int n) {
          under_way.emplace_back();
          f(p, n, MPI_BYTE, r, 0, MPI_COMM_WORLD, &under_way.back());
        });
        start += size;
      }
    };
    each(all, from, MPI_Irecv);
    each({const_cast<std::byte*>(mine.data()), mine.size()}, to, MPI_Isend);
    MPI_Waitall(as_int(under_way.size()), under_way.data(), MPI_STATUSES_IGNORE);
    sent(mine.size() - to[static_cast<std::size_t>(rank_)]);
  }

  void sum(std::span<Fixed> numbers) override {
    const Clock clock(*this);
    constexpr std::size_t kMost = kLargest / sizeof(Fixed);
    for (std::size_t at = 0; at < numbers.size(); at += kMost) {
      const std::span part = numbers.subspan(at, std::min(kMost, numbers.size() - at));
      MPI_Allreduce(MPI_IN_PLACE, part.data(), as_int(part.size()), fixed_, add_, MPI_COMM_WORLD);
    }
    if (count_ > 1) sent(2 * numbers.size_bytes());  // of a ring, about
  }

  bool any(bool mine) override {
    const Clock clock(*this);
    int one = mine ? 1 : 0, found = 0;
    MPI_Allreduce(&one, &found, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return found != 0;
  }

  void broadcast(Bytes bytes) override {
    const Clock clock(*this);
    broadcast_from(0, bytes);
    if (first()) sent(bytes.size() * static_cast<std::size_t>(count_ - 1));
  }

  void gather(ConstBytes mine, FunctionRef<void(ConstBytes)> take) override {
    const Clock clock(*this);
    if (!first()) {
      send_size(mine.size());
      return send({const_cast<std::byte*>(mine.data()), mine.size()}, 0);
    }
    take(mine);
    std::vector<std::byte> theirs;
    for (int r = 1; r < count_; ++r) {
      theirs.resize(receive_size(r));
      receive(theirs, r);
      take(theirs);
    }
  }

  void scatter(Bytes mine, FunctionRef<void(Bytes)> fill) override {
    const Clock clock(*this);
    if (!first()) {
      send_size(mine.size());
      return receive(mine, 0);
    }
    fill(mine);
    std::vector<std::byte> theirs;
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

  void sent(std::size_t bytes) { traffic_.bytes += static_cast<std::int64_t>(bytes); }
  template <class F>
  static void in_pieces(Bytes bytes, F f) {
    for (std::size_t at = 0; at < bytes.size(); at += kLargest)
      f(bytes.data() + at, as_int(std::min(kLargest, bytes.size() - at)));
  }
  static void broadcast_from(int rank, Bytes bytes) {
    in_pieces(bytes, [&](std::byte* p, int n) { MPI_Bcast(p, n, MPI_BYTE, rank, MPI_COMM_WORLD); });
  }
  // MPI_Allgatherv takes starts as ints, so every rank broadcasts its bytes in turn.
  void all_gather_large(ConstBytes mine, Counts counts, Bytes all) const {
    std::size_t start = 0;
    for (int r = 0; r < count_; ++r) {
      const Bytes theirs = all.subspan(start, counts[static_cast<std::size_t>(r)]);
      if (r == rank_) std::copy(mine.begin(), mine.end(), theirs.begin());
      broadcast_from(r, theirs);
      start += theirs.size();
    }
  }
  void send(Bytes bytes, int to) {
    in_pieces(bytes, [&](std::byte* p, int n) { MPI_Send(p, n, MPI_BYTE, to, 0, MPI_COMM_WORLD); });
    sent(bytes.size());
  }
  static void receive(Bytes bytes, int from) {
    in_pieces(bytes, [&](std::byte* p, int n) {
      MPI_Recv(p, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
  MPI_Datatype fixed_;
  MPI_Op add_;
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
