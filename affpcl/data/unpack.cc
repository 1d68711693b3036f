#include "affpcl/data/unpack.h"

#include <fmt/format.h>

#include <vector>

#include "affpcl/base/error.h"
#ifdef AFFPCL_ZLIB
#include <zlib.h>
#endif
#ifdef AFFPCL_ZSTD
#include <zstd.h>
#endif
#ifdef AFFPCL_LZMA
#include <lzma.h>
#endif

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

[[noreturn]] void damaged(const std::string& path, std::string_view packer) {
  throw BadInput(fmt::format("{} is damaged: {} cannot unpack it", path, packer));
}

[[noreturn]] void cut_off(const std::string& path, std::string_view packer) {
  throw BadInput(fmt::format("{} is cut off: {} finds no end in it", path, packer));
}

[[maybe_unused, noreturn]] void built_without(const std::string& path, const char* library,
                                              const char* program) {
  throw BadInput(
      fmt::format("{} is packed, and this affpcl was built without {}; unpack it with {} first",
                  path, library, program));
}

#ifdef AFFPCL_ZLIB
// One or more gzip members, one behind another.
void gunzip(const std::string& path, ReadBytes read, WriteBytes write) {
  struct Stream {
    z_stream z = {};
    Stream() {
      if (inflateInit2(&z, 15 + 16) != Z_OK) throw Failure("zlib cannot start");
    }
    ~Stream() { inflateEnd(&z); }
  } stream;
  z_stream& z = stream.z;
  std::vector<unsigned char> in(kBlock), out(kBlock);
  bool inside = true, at_end = false;  // of a member; of the file
  for (;;) {
    if (z.avail_in == 0 && !at_end) {
      z.next_in = in.data();
      z.avail_in = static_cast<uInt>(read(reinterpret_cast<char*>(in.data()), in.size()));
      at_end = z.avail_in == 0;
    }
    if (!inside && z.avail_in == 0) return;
    if (!inside) {
      if (*z.next_in == 0) {  // zeros that tape drives add
        ++z.next_in, --z.avail_in;
        continue;
      }
      inflateReset(&z);
    }
    z.next_out = out.data();
    z.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&z, Z_NO_FLUSH);
    write(reinterpret_cast<const char*>(out.data()), out.size() - z.avail_out);
    if (code == Z_BUF_ERROR && at_end) cut_off(path, "gzip");
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) damaged(path, "gzip");
    inside = code != Z_STREAM_END;
  }
}
#endif

#ifdef AFFPCL_ZSTD
void unzstd(const std::string& path, ReadBytes read, WriteBytes write) {
  struct Stream {
    ZSTD_DStream* z = ZSTD_createDStream();
    ~Stream() { ZSTD_freeDStream(z); }
  } stream;
  if (stream.z == nullptr) throw Failure("zstd cannot start");
  std::vector<char> in(kBlock), out(kBlock);
  std::size_t left = 1;  // 0: a frame is complete
  while (const std::size_t got = read(in.data(), in.size())) {
    ZSTD_inBuffer input{in.data(), got, 0};
    for (bool full = false; input.pos < input.size || full;) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      left = ZSTD_decompressStream(stream.z, &output, &input);
      if (ZSTD_isError(left) != 0) damaged(path, "zstd");
      write(out.data(), output.pos);
      full = output.pos == output.size && left != 0;
    }
  }
  if (left != 0) cut_off(path, "zstd");
}
#endif

#ifdef AFFPCL_LZMA
void unxz(const std::string& path, ReadBytes read, WriteBytes write) {
  struct Stream {
    lzma_stream z = LZMA_STREAM_INIT;
    ~Stream() { lzma_end(&z); }
  } stream;
  lzma_stream& z = stream.z;
  if (lzma_stream_decoder(&z, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK)
    throw Failure("xz cannot start");
  std::vector<unsigned char> in(kBlock), out(kBlock);
  bool at_end = false;
  for (;;) {
    if (z.avail_in == 0 && !at_end) {
      z.next_in = in.data();
      z.avail_in = read(reinterpret_cast<char*>(in.data()), in.size());
      at_end = z.avail_in == 0;
    }
    z.next_out = out.data();
    z.avail_out = out.size();
    const lzma_ret code = lzma_code(&z, at_end ? LZMA_FINISH : LZMA_RUN);
    write(reinterpret_cast<const char*>(out.data()), out.size() - z.avail_out);
    if (code == LZMA_STREAM_END) return;
    if (code == LZMA_BUF_ERROR) cut_off(path, "xz");
    if (code != LZMA_OK) damaged(path, "xz");
  }
}
#endif

}  // namespace

Packing packing_of(std::string_view opening) {
  using namespace std::string_view_literals;
  if (opening.starts_with("\x1f\x8b"sv)) return Packing::kGzip;
  if (opening.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::kZstd;
  if (opening.starts_with("\xfd\x37\x7a\x58\x5a\0"sv)) return Packing::kXz;
  return Packing::kNone;
}

void unpack(const std::string& path, Packing packing, [[maybe_unused]] ReadBytes read,
            [[maybe_unused]] WriteBytes write) {
  switch (packing) {
    case Packing::kGzip:
#ifdef AFFPCL_ZLIB
      return gunzip(path, read, write);
#else
      built_without(path, "zlib", "gunzip");
#endif
    case Packing::kZstd:
#ifdef AFFPCL_ZSTD
      return unzstd(path, read, write);
#else
      built_without(path, "libzstd", "unzstd");
#endif
    case Packing::kXz:
#ifdef AFFPCL_LZMA
      return unxz(path, read, write);
#else
      built_without(path, "liblzma", "unxz");
#endif
    case Packing::kNone:
      break;
  }
}

}  // namespace affpcl
