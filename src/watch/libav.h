// The functions of libav (FFmpeg) in use, found while the program runs. For the .cc files of this module.
#pragma once

#if __has_include(<libavformat/avformat.h>)
#define WEIR_HAS_LIBAV 1

#include <atomic>
#include <cstdint>
#include <string>

#include "base/error.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

namespace weir::watch {

// Linking would bind the program to a GPL build of libav.
struct Libav {
  // clang-format off: a table
#define WEIR_LIBAV_FUNCTIONS(F)                                                                            \
  F(format, avformat_version) F(format, avformat_alloc_context) F(format, avformat_open_input)             \
  F(format, avformat_find_stream_info) F(format, av_find_best_stream) F(format, av_read_frame)             \
  F(format, avformat_close_input) F(codec, avcodec_version) F(codec, avcodec_find_decoder)                 \
  F(codec, avcodec_alloc_context3) F(codec, avcodec_parameters_to_context) F(codec, avcodec_open2)         \
  F(codec, avcodec_send_packet) F(codec, avcodec_receive_frame) F(codec, avcodec_free_context)             \
  F(codec, avcodec_flush_buffers) F(codec, av_packet_alloc) F(codec, av_packet_free)                       \
  F(codec, av_packet_unref) F(codec, av_packet_get_side_data) F(util, av_frame_alloc)                      \
  F(util, av_frame_free) F(util, av_dict_set) F(util, av_dict_free) F(util, av_strerror)                   \
  F(util, av_log_set_level) F(util, avutil_version) F(scale, sws_getCachedContext) F(scale, sws_scale)     \
  F(scale, sws_freeContext) F(scale, swscale_version) F(codec, avcodec_find_encoder_by_name)              \
  F(codec, avcodec_send_frame) F(codec, avcodec_receive_packet) F(util, av_frame_get_buffer)               \
  F(util, av_frame_unref) F(util, av_frame_move_ref) F(util, av_opt_set) F(codec, avcodec_parameters_alloc) F(codec, avcodec_parameters_free) \
  F(util, av_log_set_callback) F(util, av_frame_get_side_data) F(format, av_stream_get_side_data)          \
  F(format, av_guess_frame_rate) F(scale, sws_getCoefficients) F(scale, sws_getColorspaceDetails)          \
  F(scale, sws_setColorspaceDetails)
#define WEIR_DECLARE(library, name) decltype(&::name) name = nullptr;
  WEIR_LIBAV_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
  // clang-format on

  std::string Words(int error) const;
};

// Counts of one input that libav only logs. An AVFormatContext's `opaque` points to it.
struct LibavLosses {
  std::atomic<int64_t> packets = 0;  // of RTP, missing by their sequence numbers
};

// Opened once, on first use; it stays open as long as the process lives. kUnsupported says what to install.
const Result<Libav>& TheLibav();

}  // namespace weir::watch

#endif
