#include "data/jpeg_huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace weir::data {
namespace {

// From the order of the codes to that of the block (ITU-T T.81, figure A.6). Runs that lead past the end are
// put on the last coefficient, as libjpeg does; the largest stands for the end of a block.
constexpr uint8_t kOrder[128] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45,
    38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};
constexpr int kEndOfBlock = 63;  // a run: what follows is past the end wherever it began

// Copies up to a marker, or `room` bytes, without the zeros that are stuffed behind 0xff.
struct Copied {
  const uint8_t* from;  // where it ended; at the marker's 0xff
  uint8_t* to;
  bool at_marker;  // or at the file's end
};
Copied CopyUnstuffed(const uint8_t* from, const uint8_t* file_end, size_t room, uint8_t* to) {
  const uint8_t* end = from + std::min(room, static_cast<size_t>(file_end - from));
  while (from < end) {
    const size_t left = static_cast<size_t>(end - from);
    const auto* mark = static_cast<const uint8_t*>(std::memchr(from, 0xff, left));
    const size_t count = mark == nullptr ? left : static_cast<size_t>(mark - from);
    std::memcpy(to, from, count);
    to += count;
    from += count;
    if (mark == nullptr) break;
    if (file_end - mark < 2 || mark[1] != 0) return {mark, to, true};
    *to++ = 0xff;
    from += 2;
  }
  return {from, to, from >= file_end};
}

}  // namespace

bool JpegHuffman::CanDecode(jpeg_decompress_struct& cinfo) {
  return cinfo.progressive_mode == FALSE && cinfo.arith_code == FALSE &&
         jpeg_has_multiple_scans(&cinfo) == FALSE;
}

JpegHuffman::Entry JpegHuffman::EntryOf(Kind kind, uint8_t symbol, int code_bits) {
  const int size = kind == Kind::kDc ? symbol : symbol & 15;
  int run = kind == Kind::kDc ? 0 : symbol >> 4;
  if (kind == Kind::kAc && size == 0 && run != 15) run = kEndOfBlock;
  return {.all_bits = static_cast<uint8_t>(code_bits + size),
          .run = static_cast<uint8_t>(run),
          .code_bits = static_cast<uint8_t>(code_bits),
          .size = static_cast<uint8_t>(size)};
}

// The codes of a length follow one another, and twice the next one is the first of the next length (T.81,
// C.2).
void JpegHuffman::Make(const JHUFF_TBL& from, Kind kind, Table& table) {
  std::memset(table.entries, 0, sizeof(table.entries));
  table.symbols = from.huffval;
  int32_t code = 0, place = 0;
  for (int length = 1; length <= 16; ++length, code *= 2) {
    const int32_t count = from.bits[length];
    table.offset[length] = place - code;
    table.largest[length] = count > 0 ? code + count - 1 : -1;
    for (int32_t i = 0; i < count; ++i, ++code, ++place) {
      if (length > kBits) continue;
      const size_t same = size_t{1} << (kBits - length);  // whatever follows the code
      std::fill_n(table.entries + static_cast<size_t>(code) * same, same,
                  EntryOf(kind, from.huffval[place], length));
    }
  }
}

void JpegHuffman::Install(jpeg_decompress_struct& cinfo) {
  bool has_dc[NUM_HUFF_TBLS] = {}, has_ac[NUM_HUFF_TBLS] = {};
  for (int i = 0; i < cinfo.comps_in_scan; ++i) {
    const int dc = cinfo.cur_comp_info[i]->dc_tbl_no, ac = cinfo.cur_comp_info[i]->ac_tbl_no;
    if (!std::exchange(has_dc[dc], true)) Make(*cinfo.dc_huff_tbl_ptrs[dc], Kind::kDc, dc_[dc]);
    if (!std::exchange(has_ac[ac], true)) Make(*cinfo.ac_huff_tbl_ptrs[ac], Kind::kAc, ac_[ac]);
  }
  block_count_ = cinfo.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int component = cinfo.MCU_membership[i];
    const jpeg_component_info& info = *cinfo.cur_comp_info[component];
    blocks_[i] = {&dc_[info.dc_tbl_no], &ac_[info.ac_tbl_no], component};
  }
  mcus_left_ = int64_t{cinfo.MCUs_per_row} * cinfo.MCU_rows_in_scan;
  cinfo.client_data = this;
  cinfo.entropy->decode_mcu = DecodeMcu;
  BeginSegment(cinfo);
}

inline void JpegHuffman::Bits::Refill() {
  static_assert(std::endian::native == std::endian::little);
  uint64_t bytes;
  std::memcpy(&bytes, next, sizeof(bytes));
  buffer |= __builtin_bswap64(bytes) >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

// A code of more than kBits; sets `bad` where none begins so.
[[gnu::noinline]] JpegHuffman::Entry JpegHuffman::LongCode(const Table& table, Kind kind, Bits& bits) {
  bits.Refill();
  for (int length = kBits + 1; length <= 16; ++length) {
    const auto code = static_cast<int32_t>(bits.Look(length));
    if (code <= table.largest[length])
      return EntryOf(kind, table.symbols[code + table.offset[length]], length);
  }
  bits.bad = true;
  return {.all_bits = 16, .run = kEndOfBlock, .code_bits = 16, .size = 0};
}

inline JpegHuffman::Entry JpegHuffman::NextCode(const Table& table, Kind kind, Bits& bits) {
  Entry entry = table.entries[bits.Look(kBits)];
  if (entry.all_bits == 0) [[unlikely]] {
    Bits copy = bits;  // so that the bits themselves stay in registers
    entry = LongCode(table, kind, copy);
    bits = copy;
  }
  return entry;
}

// Passes over a code and gives the coefficient behind it: one that begins with a 0 is negative (T.81,
// F.2.2.1, EXTEND).
inline int JpegHuffman::Take(const Entry& entry, Bits& bits) {
  const uint64_t from = bits.buffer << entry.code_bits;
  const auto value = static_cast<int>(from >> 1 >> (63 - entry.size));
  const auto negative = static_cast<int>(static_cast<int64_t>(~from) >> 63);  // 0 or -1
  bits.Skip(entry.all_bits);
  return value + (negative & (static_cast<int>(~0u << entry.size) + 1));
}

// Two coefficients for each load of bits. Where an entry tells of none, a zero is put where one is.
inline void JpegHuffman::ReadAc(const Table& table, Bits& bits, JCOEF* block) {
  int k = 1;
  const auto read = [&] {
    const Entry entry = NextCode(table, Kind::kAc, bits);
    k += entry.run;
    block[kOrder[k]] = static_cast<JCOEF>(Take(entry, bits));
    k += 1;
  };
  do {
    bits.Refill();
    read();
    if (k >= DCTSIZE2) return;
    read();
  } while (k < DCTSIZE2);
}

boolean JpegHuffman::DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  JpegHuffman& self = *static_cast<JpegHuffman*>(cinfo->client_data);
  if (cinfo->restart_interval != 0 && self.until_restart_ == 0) {
    self.EndSegment(*cinfo);
    (*cinfo->marker->read_restart_marker)(cinfo);
    self.BeginSegment(*cinfo);
  }
  if (!self.whole_ && self.end_ - self.bits_.next < kMostPerMcu) self.Load(*cinfo);
  Bits bits = self.bits_;
  for (int i = 0; i < self.block_count_; ++i) {
    const Block& one = self.blocks_[i];
    JCOEF* block = blocks == nullptr ? self.spare_ : *blocks[i];
    bits.Refill();
    uint32_t& dc = self.last_dc_[one.component];
    dc += static_cast<uint32_t>(Take(NextCode(*one.dc, Kind::kDc, bits), bits));
    block[0] = static_cast<JCOEF>(dc);
    ReadAc(*one.ac, bits, block);
  }
  self.bits_ = bits;
  self.until_restart_ -= 1;
  self.mcus_left_ -= 1;
  const auto fail = [&](const char* words) {
    FailJpeg(reinterpret_cast<j_common_ptr>(cinfo), RejectReason::kDamaged, words);
  };
  if (self.BitsLeft() < 0) fail("Corrupt JPEG data: premature end of data segment");
  if (bits.bad) fail("Corrupt JPEG data: bad Huffman code");
  if (self.mcus_left_ == 0) self.EndSegment(*cinfo);
  return TRUE;
}

void JpegHuffman::BeginSegment(jpeg_decompress_struct& cinfo) {
  std::fill_n(last_dc_, MAX_COMPS_IN_SCAN, 0);
  until_restart_ = cinfo.restart_interval;
  end_ = buffer_;
  bits_ = {.buffer = 0, .count = 0, .next = buffer_, .bad = false};
  whole_ = false;
  Load(cinfo);
}

// Fills the buffer behind what is left in it. The source then stands where the next load, or the reader of
// markers, goes on.
void JpegHuffman::Load(jpeg_decompress_struct& cinfo) {
  const size_t kept = static_cast<size_t>(end_ - bits_.next);
  std::memmove(buffer_, bits_.next, kept);
  jpeg_source_mgr& source = *cinfo.src;
  const uint8_t* file_end = source.next_input_byte + source.bytes_in_buffer;
  const Copied copied = CopyUnstuffed(source.next_input_byte, file_end, kBuffer - kept, buffer_ + kept);
  source.next_input_byte = copied.from;
  source.bytes_in_buffer = static_cast<size_t>(file_end - copied.from);
  bits_.next = buffer_;
  end_ = copied.to;
  whole_ = copied.at_marker;
  // Where bits are missing, an MCU is read out of these, and then found too long.
  if (whole_) std::memset(copied.to, 0, kMostPerMcu + 16);
}

// Nothing but the bits that fill the last byte may be left.
void JpegHuffman::EndSegment(jpeg_decompress_struct& cinfo) {
  if (whole_ && BitsLeft() < 8) return;
  FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged,
           "bytes are left after the last block");
}

}  // namespace weir::data
