// The pictures of a made stream: persons that move before a background, below a strip for the code. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image/decode.h"
#include "watch/frame_code.h"
#include "watch/stream_spec.h"
#include "watch/tracker.h"

namespace weir::watch {

class MadeScene {
 public:
  static constexpr int kPhases = 32;  // pictures of the loop
  using Colour = std::array<uint8_t, 3>;
  struct Person {
    Colour skin, shirt, stripe, trousers;
    double centre, reach, phase, height;  // shares of the picture
  };

  MadeScene(const MadeSpec& spec, int width, int height);
  // RGB, without a code. `boxes`: where its persons are, by number; may be null. A person's look does not
  // change.
  image::Pixels Draw(int phase, std::vector<Box>* boxes) const;

 private:
  image::Pixels empty_;
  std::vector<Person> persons_;
};

// The rows of pixels at the top that the code gets: whole rows of blocks.
int StripHeight(int width);
// Draws the code on grey, of 1 or 3 channels.
image::Pixels DrawStrip(int width, int channels, const FrameCode& code);

}  // namespace weir::watch
