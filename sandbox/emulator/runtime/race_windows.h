// The check for races in global memory (races.h) for full warps at regular places: eight granules at a time.
//
// What it cannot tell to be in order in a few vector operations it leaves to the exact check, lane by lane. Marks of
// reads may have been made by then: to make them once more changes nothing.
#pragma once

#include "batch.h"
#include "race_eights.h"

namespace kw {
namespace race_marks {

// Lanes of the granules of a part, when `words` granules after each other are one lane's.
inline Marks lanes_of(u32 part, u32 words) {
  const Marks order = {0, 1, 2, 3, 4, 5, 6, 7};
  return ((order + part * PART) >> static_cast<RaceMark>(std::countr_zero(words))) << static_cast<RaceMark>(THREAD_SHIFT);
}

}  // namespace race_marks

// Loads at one pattern and several offsets.
class RaceReads {
 public:
  RaceReads(Warp* warp, u32 site, u32 bytes, const Allocation* allocation);
  RaceReads(const RaceReads&) = delete;
  bool wanted() const { return mine_ != 0; }
  template <u32 Size>
  void add(const Pattern& pattern, int group);
  // False: the exact check has to look.
  bool read(u32 site, i64 offset) const;

 private:
  struct Window {
    u64 low;
    u32 few;  // granules, when all lanes read the same
    race_marks::Marks mine[2];
    Flags touched[2];
  };

  std::optional<race_marks::Access> access_;
  std::optional<race_marks::Look> look_;
  RaceMark mine_ = 0;
  int count_ = 0;
  Window windows_[MAX_GROUPS];
};

template <u32 Size>
void RaceReads::add(const Pattern& pattern, int group) {
  constexpr u32 WORDS = Size / 4, FEW = (1u << WORDS) - 1, IN_GROUP = 64 / Size;
  Window& window = windows_[count_];
  window.low = pattern.origin[group];
  window.few = pattern.words[group] == FEW ? WORDS : 0;
  if (window.few && count_ && windows_[count_ - 1].few && windows_[count_ - 1].low == window.low) return;
  ++count_;
  RaceMark lane = mine_ + (static_cast<RaceMark>(group) * IN_GROUP << race_marks::THREAD_SHIFT);
  if (window.few) {
    window.mine[0] = race_marks::Marks{} + (lane | race_marks::LANES_MARK);
    return;
  }
  PatternIndex<Size> index[IN_GROUP], moved = 0;
  std::memcpy(index, pattern.index + group * 64, sizeof index);
  for (u32 i = 0; i < IN_GROUP; ++i) moved |= index[i] ^ i;
  if (!moved) {
    for (u32 part = 0; part < 2; ++part) {
      window.mine[part] = race_marks::lanes_of(part, WORDS) + lane;
      window.touched[part] = ~Flags{};
    }
    return;
  }
  RaceMark marks[WINDOW_WORDS] = {};
  for (u32 i = 0; i < IN_GROUP; ++i, lane += RaceMark{1} << race_marks::THREAD_SHIFT)
    for (u32 k = 0; k < WORDS; ++k) {
      RaceMark& mark = marks[index[i] * WORDS + k];
      mark = mark ? mark | race_marks::LANES_MARK : lane;
    }
  std::memcpy(window.mine, marks, sizeof marks);
  for (int part = 0; part < 2; ++part) window.touched[part] = window.mine[part] != 0;
}

// A read of a full warp, places in a row. False: the exact check has to look.
bool race_read_row(const race_marks::Access& access, RaceMark mine, u64 at);

}  // namespace kw
