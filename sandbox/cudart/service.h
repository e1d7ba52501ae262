// The library's side of the socket to the process that started the program (sandbox/program is the other side).
//
// KERNELWRIGHT_SERVICE names an open SOCK_SEQPACKET socket. One message asks, one answers, in order. A message is
// words separated by tabs; what is larger travels in a memory file passed along with it.
//
//     configure                           -> ok, and a file of lines: the tables of kernelwright_record (product,
//                                            limit), and `option <name> <value>`
//     module <id>             and PTX (a NUL between texts that were linked together)
//                                         -> ok, and a file of `kernel` lines (registers 0: not known)
//     lower <id> <symbol> <mode>          -> ok, and the lowered library, or unsupported <message>, which the service
//                                            has told the person
//     fault | trace | finish  and JSON    -> ok
//     refused <symbol> <why>              -> ok; a kernel that cannot be run at all
//     note <text>                         -> ok; the service prints it as one line on standard error, once
#pragma once

#include <string>
#include <string_view>
#include <vector>

class Service {
  public:
    struct Answer {
        std::vector<std::string> words;  // the first one is "ok" or says what is wrong
        int file = -1;                   // the caller's to close
        bool ok() const { return !words.empty() && words[0] == "ok"; }
        // Whether the service has told the person itself: a refusal, or its own fault.
        bool said() const { return !words.empty() && (words[0] == "unsupported" || words[0] == "failed"); }
        std::string why() const { return words.size() > 1 ? words[1] : "the emulator's service does not answer"; }
    };

    // Where there is no answer any more, asking ends the program: no kernel can run, no finding be told, and it
    // might not look at errors.
    explicit Service(int socket) : socket_(socket) {}
    Answer ask(const std::string &question);
    Answer ask(const std::string &question, std::string_view document);
    // The same, and the file of the answer read and closed.
    std::string read(Answer &answer);

  private:
    Answer exchange(const std::string &question, int file);
    int socket_;
};

std::vector<std::string> split(std::string_view text, char at);
