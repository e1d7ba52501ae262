#include "fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatMagic = 0xba55ed50;
constexpr int kLinked = 2;  // wrapper version: the data is linked code, and its object files are listed
constexpr uint16_t kPtx = 1, kElf = 2;
constexpr uint64_t kCompressed = 0x2000 | 0x8000;

struct Wrapper {
    uint32_t magic;
    int32_t version;
    const char *data;
    const char *const *objects;
};

struct FatHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes;
};

struct Entry {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes;
    uint32_t options;
    uint16_t minor, major;
    uint32_t architecture;
    uint32_t name, name_bytes;
    uint64_t flags;
};

template <class T>
const T *at(const char *data, uint64_t offset) {
    return reinterpret_cast<const T *>(data + offset);
}

// Registers and stack of each kernel in a cubin, from its .nv.info: entries of a format, what it is, a size, and
// then the kernel's symbol and the number. Older cubins keep the registers in the section's header.
void read_cubin(std::string_view cubin, Code &code) {
    const char *data = cubin.data();
    if (cubin.size() < sizeof(Elf64_Ehdr) || std::memcmp(data, ELFMAG, SELFMAG) != 0) return;
    auto *header = at<Elf64_Ehdr>(data, 0);
    if (header->e_shoff + uint64_t{header->e_shnum} * sizeof(Elf64_Shdr) > cubin.size()) return;
    auto *sections = at<Elf64_Shdr>(data, header->e_shoff);
    const char *names = data + sections[header->e_shstrndx].sh_offset;
    std::map<uint32_t, Resources *> by_symbol;
    for (int i = 0; i < header->e_shnum; i++) {
        std::string_view name = names + sections[i].sh_name;
        if (!name.starts_with(".text.")) continue;
        Resources &kernel = code.resources[std::string(name.substr(6))];
        kernel.registers = static_cast<int>(sections[i].sh_info >> 24);
        by_symbol[sections[i].sh_info & 0xffffff] = &kernel;
    }
    constexpr uint8_t kSized = 4, kFrame = 0x11, kRegisters = 0x2f;
    for (int i = 0; i < header->e_shnum; i++) {
        if (std::string_view(names + sections[i].sh_name) != ".nv.info") continue;
        uint64_t place = sections[i].sh_offset, end = place + sections[i].sh_size;
        while (place + 4 <= end) {
            auto format = static_cast<uint8_t>(data[place]), what = static_cast<uint8_t>(data[place + 1]);
            uint16_t bytes = format == kSized ? *at<uint16_t>(data, place + 2) : 0;
            auto kernel = bytes == 8 ? by_symbol.find(*at<uint32_t>(data, place + 4)) : by_symbol.end();
            if (kernel != by_symbol.end()) {
                auto number = static_cast<int>(*at<uint32_t>(data, place + 8));
                if (what == kFrame) kernel->second->local_bytes = number;
                if (what == kRegisters) kernel->second->registers = number;
            }
            place += 4 + bytes;
        }
    }
}

// The PTX of the highest architecture that is not above the target's, "" when there is none.
std::string read_fat(const char *fat, int architecture, Code &code) {
    auto *header = at<FatHeader>(fat, 0);
    if (header->magic != kFatMagic) {
        code.problem = "its device code has a format that is not known here";
        return "";
    }
    const char *best = nullptr;
    size_t best_bytes = 0;
    uint32_t best_architecture = 0;
    bool compressed = false;
    uint64_t place = header->header_bytes, end = header->header_bytes + header->bytes;
    while (place + sizeof(Entry) <= end) {
        auto *entry = at<Entry>(fat, place);
        const char *payload = fat + place + entry->header_bytes;
        place += entry->header_bytes + entry->bytes;
        bool packed = (entry->flags & kCompressed) != 0;
        if (entry->kind == kElf && !packed) read_cubin({payload, entry->bytes}, code);
        if (entry->kind != kPtx) continue;
        compressed = compressed || packed;
        if (packed || entry->architecture > static_cast<uint32_t>(architecture)) continue;
        if (best && entry->architecture <= best_architecture) continue;
        best = payload;
        best_bytes = entry->bytes;
        best_architecture = entry->architecture;
    }
    if (best) return std::string(best, strnlen(best, best_bytes));
    if (compressed)
        code.problem = "its PTX is compressed: build with nvcc -compress-mode=none";
    else
        code.problem = "it holds no PTX for sm_" + std::to_string(architecture) + " or below: build with nvcc -arch=sm_" +
                       std::to_string(architecture);
    return "";
}

}  // namespace

Code read_fat_binary(const void *pointer, int architecture) {
    Code code;
    auto *wrapper = static_cast<const Wrapper *>(pointer);
    if (!wrapper || wrapper->magic != kWrapperMagic) {
        code.problem = "its device code has a format that is not known here";
        return code;
    }
    if (wrapper->version == kLinked && wrapper->objects) {
        Code linked;
        read_fat(wrapper->data, architecture, linked);
        code.resources = linked.resources;
        for (const char *const *object = wrapper->objects; *object; object++) {
            std::string ptx = read_fat(*object, architecture, code);
            if (!ptx.empty()) code.ptx.push_back(std::move(ptx));
        }
    } else if (std::string ptx = read_fat(wrapper->data, architecture, code); !ptx.empty()) {
        code.ptx.push_back(std::move(ptx));
    }
    if (!code.ptx.empty()) code.problem.clear();
    return code;
}
