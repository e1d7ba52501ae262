// What nvcc puts beside the host code: PTX and machine code, in the fat binary that a program registers.
#pragma once

#include <map>
#include <string>
#include <vector>

// What only the machine code says of a kernel.
struct Resources {
    int registers = 0;
    int local_bytes = 0;
};

struct Code {
    std::vector<std::string> ptx;  // several where nvcc linked several object files
    std::map<std::string, Resources, std::less<>> resources;  // by kernel
    std::string problem;  // why there is no PTX, in words
};

// `wrapper` is what __cudaRegisterFatBinary is handed; `architecture` is the target's, 90.
Code read_fat_binary(const void *wrapper, int architecture);
