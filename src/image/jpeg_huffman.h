// The Huffman codes of baseline JPEGs, read in the place of libjpeg's own decoder: most of the time that a
// photo takes goes there.
#pragma once

#include <cstdint>

#include "image/jpeg_guard.h"

namespace weir::image {

// Gives the coefficients that libjpeg-turbo's decoder gives. For undamaged data only: where libjpeg would
// warn (a code that is none, bits that are not there, bytes that no block has used, but for IsStray), the
// work ends as kDamaged. Large: to be kept from picture to picture, with the tables it has made, which many
// have in common. One thread at a time.
//
// What makes it faster: stuffed bytes are taken out beforehand, so that bits are loaded eight bytes at a time
// without a look at each (Giesen, "Reading bits in far too many ways", variant 4); and one look into a table
// tells of the next two coefficients, where ten bits hold that much, so that the next look need wait for
// neither of them, nor a branch be guessed.
class JpegHuffman {
 public:
  // Returns whether it reads the picture: of one scan, sequential, by Huffman codes, and libjpeg is one whose
  // private structures are known (jpeg_private.h). Call it after jpeg_start_decompress, before any block is
  // decoded.
  static bool CanDecode(jpeg_decompress_struct& cinfo);

  // Takes the place of `cinfo`'s decoder. It must stay where it is until the last block is decoded;
  // `cinfo.client_data` is its own. What it had to do with any other picture ends. REQUIRES: CanDecode, and a
  // source that has the whole file in memory.
  void Install(jpeg_decompress_struct& cinfo);

  // MCUs outside of these columns of them are read, but their blocks left as they are. Before: all are
  // wanted.
  void WantColumns(JDIMENSION first, JDIMENSION end) {
    first_wanted_ = first;
    end_wanted_ = end;
  }

 private:
  // Bits of a look into a table: more of them find more codes, and miss more caches.
  static constexpr int kDcBits = 9, kAcBits = 10;
  // A block takes at most 64 codes of 16 bits with 15 more each; what a load reads past them fits, too.
  static constexpr int kMostPerMcu = D_MAX_BLOCKS_IN_MCU * DCTSIZE2 * 4;  // bytes
  static constexpr int kBuffer = 32 << 10;                                // bytes

  // A code and the coefficient behind it.
  struct Code {
    uint8_t all_bits;  // of both; 0: the bits looked at do not tell
    uint8_t size;      // bits of the coefficient
    uint8_t run;       // zeros before the coefficient
    int16_t offset;    // what makes the coefficient of its bits (T.81, F.2.2.1, EXTEND)
  };
  // The meaning of the next kAcBits bits: a code and the first bit of its coefficient, or the same after a
  // whole coefficient.
  struct Entry {
    uint8_t all_bits;  // of all codes and coefficients; 0: the bits do not tell
    uint8_t first_run;
    uint8_t first_step;  // first_run + 1; 0: there is no coefficient before the last
    int8_t first;
    uint8_t run, size;  // of the last, as Code has them
    int16_t offset;
  };
  static_assert(sizeof(Entry) == 8);
  // The same of as many codes as there are, where nobody wants the coefficients.
  struct Skipped {
    uint8_t all_bits;
    uint8_t before;  // coefficients before the last code
    uint8_t steps;   // with that
  };
  // All codes of a table. Those of a length follow one another, and twice the next one is the first of the
  // next length (T.81, C.2).
  struct Codes {
    bool made = false;
    JHUFF_TBL from;
    uint32_t end[17];    // of 16 bits: the first ones that begin with no code of so many bits, or fewer
    int32_t offset[17];  // from a code of so many bits to its place among the symbols

    bool AreOf(const JHUFF_TBL& table) const;
  };
  struct DcTable {
    Code looks[1 << kDcBits];
    Codes codes;
  };
  struct AcTable {
    Entry looks[1 << kAcBits];
    Skipped skipped[1 << kAcBits];
    Codes codes;
  };
  enum class Kind { kDc, kAc };
  static Code CodeOf(Kind kind, uint8_t symbol, int code_bits, bool negative);
  static void MakeLooks(const JHUFF_TBL& from, Kind kind, int look_bits, Code* looks, Codes& codes);
  static Entry EntryOf(const Code* looks, uint32_t bits);
  static Skipped SkippedOf(const Code* looks, uint32_t bits);
  static void Make(const JHUFF_TBL& from, DcTable& table);
  static void Make(const JHUFF_TBL& from, AcTable& table);

  // Bits in their order from the top of `buffer` on; at least `count` of them are right.
  struct Bits {
    uint64_t buffer;
    int count;
    const uint8_t* next;  // the first byte of which not all is in `count`
    bool bad;             // a code was none

    void Refill();                // at least 56 bits
    uint32_t Look(int n) const {  // REQUIRES: 1 <= n <= 32
      return static_cast<uint32_t>(buffer >> (64 - n));
    }
    void Skip(int n) {
      buffer <<= n;
      count -= n;
    }
  };
  static Code Find(const Codes& codes, Kind kind, int shortest, Bits& bits);
  static int Take(int all_bits, int size, int offset, Bits& bits);
  static uint32_t ReadDc(const DcTable& table, Bits& bits);
  static uint32_t ReadOne(const Codes& codes, int shortest, Bits& bits, JCOEF* block, uint32_t k);
  static uint32_t ReadTwo(const AcTable& table, Bits& bits, JCOEF* block, uint32_t k);
  static uint32_t Skip(const AcTable& table, Bits& bits, uint32_t k);
  static void ReadAc(const AcTable& table, Bits& bits, JCOEF* block);
  static void SkipAc(const AcTable& table, Bits& bits);

  static boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);
  void ReadMcu(jpeg_decompress_struct& cinfo, JBLOCKROW* blocks);
  void EndMcu(jpeg_decompress_struct& cinfo);
  void NextSegment(jpeg_decompress_struct& cinfo);
  void BeginSegment(jpeg_decompress_struct& cinfo);
  void Load(jpeg_decompress_struct& cinfo);
  void EndSegment(jpeg_decompress_struct& cinfo);
  bool IsStrayAtEnd(const jpeg_decompress_struct& cinfo) const;
  int64_t BitsLeft() const { return 8 * (end_ - bits_.next) + bits_.count; }

  DcTable dc_[NUM_HUFF_TBLS];
  AcTable ac_[NUM_HUFF_TBLS];
  struct Block {
    const DcTable* dc;
    const AcTable* ac;
    int component;
  };
  Block blocks_[D_MAX_BLOCKS_IN_MCU];
  int block_count_;
  uint32_t last_dc_[MAX_COMPS_IN_SCAN];  // modulo 2^32, as damaged data may have them
  int64_t mcus_left_;                    // of the scan
  JDIMENSION column_, columns_;          // of MCUs: the next, and how many there are
  JDIMENSION first_wanted_, end_wanted_;
  unsigned until_restart_;  // MCUs

  Bits bits_;
  bool whole_;          // all of the segment that is left, up to its marker, is in the buffer
  const uint8_t* end_;  // of what is in the buffer
  uint8_t buffer_[kBuffer + kMostPerMcu + 16];
};

}  // namespace weir::image
