#include "image/jpeg_huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "image/jpeg_private.h"

namespace weir::image {
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
  return HasKnownJpegStructures() && cinfo.progressive_mode == FALSE && cinfo.arith_code == FALSE &&
         jpeg_has_multiple_scans(&cinfo) == FALSE;
}

JpegHuffman::Code JpegHuffman::CodeOf(Kind kind, uint8_t symbol, int code_bits, bool negative) {
  const int size = kind == Kind::kDc ? symbol : symbol & 15;
  int run = kind == Kind::kDc ? 0 : symbol >> 4;
  if (kind == Kind::kAc && size == 0 && run != 15) run = kEndOfBlock;
  return {.all_bits = static_cast<uint8_t>(code_bits + size),
          .size = static_cast<uint8_t>(size),
          .run = static_cast<uint8_t>(run),
          .offset = static_cast<int16_t>(negative ? 1 - (1 << size) : 0)};
}

bool JpegHuffman::Codes::AreOf(const JHUFF_TBL& table) const {
  if (!made || std::memcmp(from.bits, table.bits, sizeof(table.bits)) != 0) return false;
  const int count = std::accumulate(table.bits + 1, table.bits + 17, 0);
  return std::memcmp(from.huffval, table.huffval, static_cast<size_t>(count)) == 0;
}

// Into `looks` all codes that `look_bits` bits tell of, with the first bit of the coefficient, which is its
// sign: 0 for a negative one.
void JpegHuffman::MakeLooks(const JHUFF_TBL& from, Kind kind, int look_bits, Code* looks, Codes& codes) {
  std::fill_n(looks, size_t{1} << look_bits, Code{});
  codes.made = true;
  codes.from = from;
  codes.end[0] = 0;
  codes.offset[0] = 0;
  uint32_t code = 0;
  int32_t place = 0;
  for (int length = 1; length <= 16; ++length) {
    code *= 2;
    codes.offset[length] = place - static_cast<int32_t>(code);
    for (int32_t i = 0; i < from.bits[length]; ++i, ++code, ++place) {
      const Code positive = CodeOf(kind, from.huffval[place], length, false);
      if (length + std::min<int>(positive.size, 1) > look_bits) continue;
      const size_t same = size_t{1} << (look_bits - length);  // whatever follows the code
      Code* first = looks + code * same;
      std::fill_n(first, same / 2, CodeOf(kind, from.huffval[place], length, true));
      std::fill_n(first + same / 2, same - same / 2, positive);
    }
    codes.end[length] = code << (16 - length);
  }
}

JpegHuffman::Entry JpegHuffman::EntryOf(const Code* looks, uint32_t bits) {
  const Code& code = looks[bits];
  Entry entry{.all_bits = code.all_bits,
              .first_run = kEndOfBlock,  // a zero where one is
              .first_step = 0,
              .first = 0,
              .run = code.run,
              .size = code.size,
              .offset = code.offset};
  constexpr int kLargestSize = 7;  // of a first coefficient, as Entry has room for it
  const int left = kAcBits - code.all_bits;
  if (code.all_bits == 0 || left <= 0 || code.run == kEndOfBlock || code.size > kLargestSize) return entry;
  const Code& next = looks[(bits << code.all_bits) & ((1u << kAcBits) - 1)];
  if (next.all_bits == 0 || next.all_bits - next.size + std::min<int>(next.size, 1) > left) return entry;
  const auto value = static_cast<int>((bits >> left) & ((1u << code.size) - 1)) + code.offset;
  return {.all_bits = static_cast<uint8_t>(code.all_bits + next.all_bits),
          .first_run = code.run,
          .first_step = static_cast<uint8_t>(code.run + 1),
          .first = static_cast<int8_t>(value),
          .run = next.run,
          .size = next.size,
          .offset = next.offset};
}

JpegHuffman::Skipped JpegHuffman::SkippedOf(const Code* looks, uint32_t bits) {
  Skipped skipped{.all_bits = 0, .before = 0, .steps = 0};
  for (bool more = true; more && skipped.all_bits < kAcBits;) {
    const Code& code = looks[(bits << skipped.all_bits) & ((1u << kAcBits) - 1)];
    const int told = skipped.all_bits + code.all_bits - code.size + std::min<int>(code.size, 1);
    if (code.all_bits == 0 || told > kAcBits) break;
    skipped = {.all_bits = static_cast<uint8_t>(skipped.all_bits + code.all_bits),
               .before = skipped.steps,
               .steps = static_cast<uint8_t>(skipped.steps + code.run + 1)};
    more = code.run != kEndOfBlock;
  }
  return skipped;
}

void JpegHuffman::Make(const JHUFF_TBL& from, DcTable& table) {
  if (!table.codes.AreOf(from)) MakeLooks(from, Kind::kDc, kDcBits, table.looks, table.codes);
}

void JpegHuffman::Make(const JHUFF_TBL& from, AcTable& table) {
  if (table.codes.AreOf(from)) return;
  Code looks[1 << kAcBits];
  MakeLooks(from, Kind::kAc, kAcBits, looks, table.codes);
  for (uint32_t bits = 0; bits < 1u << kAcBits; ++bits) {
    table.looks[bits] = EntryOf(looks, bits);
    table.skipped[bits] = SkippedOf(looks, bits);
  }
}

void JpegHuffman::Install(jpeg_decompress_struct& cinfo) {
  for (int i = 0; i < cinfo.comps_in_scan; ++i) {
    const jpeg_component_info& info = *cinfo.cur_comp_info[i];
    Make(*cinfo.dc_huff_tbl_ptrs[info.dc_tbl_no], dc_[info.dc_tbl_no]);
    Make(*cinfo.ac_huff_tbl_ptrs[info.ac_tbl_no], ac_[info.ac_tbl_no]);
  }
  block_count_ = cinfo.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int component = cinfo.MCU_membership[i];
    const jpeg_component_info& info = *cinfo.cur_comp_info[component];
    blocks_[i] = {&dc_[info.dc_tbl_no], &ac_[info.ac_tbl_no], component};
  }
  column_ = 0;
  columns_ = cinfo.MCUs_per_row;
  WantColumns(0, columns_);
  mcus_left_ = int64_t{columns_} * cinfo.MCU_rows_in_scan;
  cinfo.client_data = this;
  ReplaceEntropyDecoder(cinfo, DecodeMcu);
  BeginSegment(cinfo);
}

[[gnu::always_inline]] inline void JpegHuffman::Bits::Refill() {
  static_assert(std::endian::native == std::endian::little);
  uint64_t bytes;
  std::memcpy(&bytes, next, sizeof(bytes));
  buffer |= __builtin_bswap64(bytes) >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

// A code of at least `shortest` bits; sets `bad` where none begins so.
[[gnu::always_inline]] inline JpegHuffman::Code JpegHuffman::Find(const Codes& codes, Kind kind, int shortest,
                                                                  Bits& bits) {
  bits.Refill();
  const uint32_t look = bits.Look(16);
  int length = shortest;
  for (int shorter = shortest; shorter < 16; ++shorter) length += look >= codes.end[shorter] ? 1 : 0;
  if (look >= codes.end[16]) {
    bits.bad = true;
    return {.all_bits = 16, .size = 0, .run = kEndOfBlock, .offset = 0};
  }
  const auto code = static_cast<int32_t>(look >> (16 - length));
  const bool negative = static_cast<int64_t>(bits.buffer << length) >= 0;
  return CodeOf(kind, codes.from.huffval[code + codes.offset[length]], length, negative);
}

// Passes over all that a look has told of, and gives the coefficient at its end. REQUIRES: all_bits >= 1.
[[gnu::always_inline]] inline int JpegHuffman::Take(int all_bits, int size, int offset, Bits& bits) {
  const auto value = static_cast<uint32_t>(bits.buffer >> (64 - all_bits)) & ((1u << size) - 1);
  bits.Skip(all_bits);
  return static_cast<int>(value) + offset;
}

[[gnu::always_inline]] inline uint32_t JpegHuffman::ReadDc(const DcTable& table, Bits& bits) {
  Code code = table.looks[bits.Look(kDcBits)];
  if (code.all_bits == 0) [[unlikely]] {
    Bits copy = bits;  // so that the bits themselves stay in registers
    code = Find(table.codes, Kind::kDc, kDcBits, copy);
    bits = copy;
  }
  return static_cast<uint32_t>(Take(code.all_bits, code.size, code.offset, bits));
}

// `k` is where the next coefficient may be, and the result where the one after is.
[[gnu::noinline]] uint32_t JpegHuffman::ReadOne(const Codes& codes, int shortest, Bits& bits, JCOEF* block,
                                                uint32_t k) {
  const Code code = Find(codes, Kind::kAc, shortest, bits);
  k += code.run;
  block[kOrder[k]] = static_cast<JCOEF>(Take(code.all_bits, code.size, code.offset, bits));
  return k + 1;
}

// Takes up to 24 bits that are loaded, or fewer than 32 and loads more first. Where an entry tells of no
// coefficient, a zero is put where one is.
[[gnu::always_inline]] inline uint32_t JpegHuffman::ReadTwo(const AcTable& table, Bits& bits, JCOEF* block,
                                                            uint32_t k) {
  const Entry entry = table.looks[bits.Look(kAcBits)];
  const uint32_t last = k + entry.first_step;
  // Where the first ends the block, what follows is another table's.
  if (entry.all_bits == 0 || last >= DCTSIZE2) [[unlikely]] {
    Bits copy = bits;
    k = ReadOne(table.codes, entry.all_bits == 0 ? kAcBits : 1, copy, block, k);
    bits = copy;
    return k;
  }
  const int value = Take(entry.all_bits, entry.size, entry.offset, bits);
  block[kOrder[k + entry.first_run]] = entry.first;
  k = last + entry.run;
  block[kOrder[k]] = static_cast<JCOEF>(value);
  return k + 1;
}

// REQUIRES: as many bits as a coefficient of a look takes. Two looks for each load of bits.
[[gnu::always_inline]] inline void JpegHuffman::ReadAc(const AcTable& table, Bits& bits, JCOEF* block) {
  uint32_t k = ReadTwo(table, bits, block, 1);
  while (k < DCTSIZE2) {
    bits.Refill();
    k = ReadTwo(table, bits, block, k);
    if (k >= DCTSIZE2) break;
    k = ReadTwo(table, bits, block, k);
  }
}

[[gnu::always_inline]] inline uint32_t JpegHuffman::Skip(const AcTable& table, Bits& bits, uint32_t k) {
  const Skipped skipped = table.skipped[bits.Look(kAcBits)];
  if (skipped.all_bits == 0 || k + skipped.before >= DCTSIZE2) [[unlikely]] {
    Bits copy = bits;
    JBLOCK unwanted;
    k = ReadOne(table.codes, skipped.all_bits == 0 ? kAcBits : 1, copy, unwanted, k);
    bits = copy;
    return k;
  }
  bits.Skip(skipped.all_bits);
  return k + skipped.steps;
}

[[gnu::always_inline]] inline void JpegHuffman::SkipAc(const AcTable& table, Bits& bits) {
  uint32_t k = Skip(table, bits, 1);
  while (k < DCTSIZE2) {
    bits.Refill();
    k = Skip(table, bits, k);
    if (k >= DCTSIZE2) break;
    k = Skip(table, bits, k);
  }
}

void JpegHuffman::ReadMcu(jpeg_decompress_struct& cinfo, JBLOCKROW* blocks) {
  if (cinfo.restart_interval != 0 && until_restart_ == 0) NextSegment(cinfo);
  if (!whole_ && end_ - bits_.next < kMostPerMcu) Load(cinfo);
  const bool wanted = blocks != nullptr && first_wanted_ <= column_ && column_ < end_wanted_;
  Bits bits = bits_;
  for (int i = 0; i < block_count_; ++i) {
    const Block& one = blocks_[i];
    bits.Refill();
    uint32_t& dc = last_dc_[one.component];
    dc += ReadDc(*one.dc, bits);
    if (wanted) {
      JCOEF* block = *blocks[i];
      block[0] = static_cast<JCOEF>(dc);
      ReadAc(*one.ac, bits, block);
    } else {
      SkipAc(*one.ac, bits);
    }
  }
  bits_ = bits;
  column_ = column_ + 1 == columns_ ? 0 : column_ + 1;
  until_restart_ -= 1;
  mcus_left_ -= 1;
  if (mcus_left_ == 0 || bits.bad || BitsLeft() < 0) EndMcu(cinfo);
}

boolean JpegHuffman::DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  static_cast<JpegHuffman*>(cinfo->client_data)->ReadMcu(*cinfo, blocks);
  return TRUE;
}

// After the last MCU, or one that is none.
void JpegHuffman::EndMcu(jpeg_decompress_struct& cinfo) {
  const auto fail = [&](const char* words) {
    FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged, words);
  };
  if (BitsLeft() < 0) fail("Corrupt JPEG data: premature end of data segment");
  if (bits_.bad) fail("Corrupt JPEG data: bad Huffman code");
  EndSegment(cinfo);
}

void JpegHuffman::NextSegment(jpeg_decompress_struct& cinfo) {
  EndSegment(cinfo);
  ReadRestartMarker(cinfo);
  BeginSegment(cinfo);
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

// Whether what is left stands between the scan and the picture's end, and is no part of a damaged scan: the
// bits that fill the scan's last byte are ones, as every writer has them.
bool JpegHuffman::IsStrayAtEnd(const jpeg_decompress_struct& cinfo) const {
  const uint8_t* marker = cinfo.src->next_input_byte;
  const uint8_t* file_end = marker + cinfo.src->bytes_in_buffer;
  while (marker < file_end && *marker == 0xff) ++marker;
  if (marker < file_end && *marker != JPEG_EOI) return false;
  Bits bits = bits_;
  bits.Refill();
  const auto fill = static_cast<int>(BitsLeft() % 8);
  if (fill > 0 && bits.Look(fill) != (1u << fill) - 1) return false;
  bits.Skip(fill);
  // Tells what is loaded begins in whole bytes now.
  const uint8_t* first = bits.next - bits.count / 8;
  return IsStray(first, static_cast<size_t>(end_ - first));
}

// Nothing but the bits that fill the last byte may be left.
void JpegHuffman::EndSegment(jpeg_decompress_struct& cinfo) {
  if (whole_ && BitsLeft() < 8) return;
  if (!whole_ && mcus_left_ == 0) Load(cinfo);
  if (whole_ && mcus_left_ == 0 && IsStrayAtEnd(cinfo)) return;
  FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged,
           "bytes are left after the last block");
}

}  // namespace weir::image
