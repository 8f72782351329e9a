// Lines that scroll, above a block that is drawn over itself. On what is no terminal the block is
// left out but for now and then.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace etalon::show {

class Screen {
 public:
  Screen() : terminal_(isatty(STDOUT_FILENO) != 0) {}

  void Line(const std::string& text) {
    Erase();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  void Block(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ && now - drawn_ < std::chrono::seconds(5)) return;
    Erase();
    drawn_ = now;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    if (!terminal_) return;
    for (char c : text) height_ += c == '\n';
  }

 private:
  void Erase() {
    if (height_ > 0) std::printf("\033[%dA\033[J", height_);
    height_ = 0;
  }
  const bool terminal_;
  int height_ = 0;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace etalon::show
