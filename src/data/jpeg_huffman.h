// The Huffman codes of baseline JPEGs, read in the place of libjpeg's own decoder: most of the time that a
// photo takes goes there.
#pragma once

#include <cstdint>

#include "data/jpeg_guard.h"

namespace weir::data {

// Gives the coefficients that libjpeg-turbo's decoder gives. For undamaged data only: where libjpeg would
// warn (a code that is none, bits that are not there, bytes that no block has used), the work ends as
// kDamaged. Large, and left without values until it is installed. One thread at a time.
//
// What makes it faster: stuffed bytes are taken out beforehand, so that bits are loaded eight bytes at a time
// without a look at each (Giesen, "Reading bits in far too many ways", variant 4); and one look into a table
// tells of nearly every code how many bits it and its coefficient take together, so that the next one need
// not wait for the coefficient, nor a branch be guessed.
class JpegHuffman {
 public:
  // Whether the picture is one that it reads: of one scan, sequential, by Huffman codes. To be asked once
  // jpeg_start_decompress has returned, before any block is decoded.
  static bool CanDecode(jpeg_decompress_struct& cinfo);

  // Takes the place of `cinfo`'s decoder. It must stay where it is until the last block is decoded;
  // `cinfo.client_data` is its own. REQUIRES: CanDecode, and a source that has the whole file in memory.
  void Install(jpeg_decompress_struct& cinfo);

 private:
  static constexpr int kBits = 9;  // of a look into a table; more find more codes, and miss more caches
  // A block takes at most 64 codes of 16 bits with 15 more each; what a load reads past them fits, too.
  static constexpr int kMostPerMcu = D_MAX_BLOCKS_IN_MCU * DCTSIZE2 * 4;  // bytes
  static constexpr int kBuffer = 32 << 10;                                // bytes

  // What the next kBits bits begin with. `all_bits` 0: a longer code, or none.
  struct Entry {
    uint8_t all_bits;   // of the code and the coefficient behind it
    uint8_t run;        // zeros before the coefficient
    uint8_t code_bits;  // of the code
    uint8_t size;       // bits of the coefficient
  };
  struct Table {
    Entry entries[1 << kBits];
    int32_t largest[17];  // code of each length, -1: none
    int32_t offset[17];   // from a code to its place in `symbols`
    const uint8_t* symbols;
  };
  enum class Kind { kDc, kAc };
  static void Make(const JHUFF_TBL& from, Kind kind, Table& table);
  static Entry EntryOf(Kind kind, uint8_t symbol, int code_bits);

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
  static Entry LongCode(const Table& table, Kind kind, Bits& bits);
  static Entry NextCode(const Table& table, Kind kind, Bits& bits);
  static int Take(const Entry& entry, Bits& bits);
  static void ReadAc(const Table& table, Bits& bits, JCOEF* block);

  static boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);
  void BeginSegment(jpeg_decompress_struct& cinfo);
  void Load(jpeg_decompress_struct& cinfo);
  void EndSegment(jpeg_decompress_struct& cinfo);
  int64_t BitsLeft() const { return 8 * (end_ - bits_.next) + bits_.count; }

  Table dc_[NUM_HUFF_TBLS], ac_[NUM_HUFF_TBLS];
  struct Block {
    const Table *dc, *ac;
    int component;
  };
  Block blocks_[D_MAX_BLOCKS_IN_MCU];
  int block_count_;
  uint32_t last_dc_[MAX_COMPS_IN_SCAN];  // modulo 2^32, as damaged data may have them
  int64_t mcus_left_;                    // of the scan
  unsigned until_restart_;               // MCUs
  JBLOCK spare_;                         // for blocks that nobody wants

  Bits bits_;
  bool whole_;          // all of the segment that is left, up to its marker, is in the buffer
  const uint8_t* end_;  // of what is in the buffer
  uint8_t buffer_[kBuffer + kMostPerMcu + 16];
};

}  // namespace weir::data
