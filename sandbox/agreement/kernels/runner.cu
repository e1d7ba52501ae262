// The cases of a job, one launch each, in order: what Nsight Compute looks at. An ordinary CUDA program.
//
//     agreement JOB DATA OUTPUT
//
// JOB holds words, see sandbox/agreement/job.py; DATA the bytes that arrays begin with. What is read back goes
// to OUTPUT, one array after another.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Kernel {
  const char *name;
  const void *function;
};
const Kernel kernels[] = {KERNELS};

struct Array {
  void *device;
  std::size_t bytes;
  bool read_back;
};

void must(cudaError_t error, const std::string &what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(error));
  std::exit(1);
}

const void *find(const std::string &name) {
  for (const Kernel &kernel : kernels)
    if (name == kernel.name) return kernel.function;
  std::fprintf(stderr, "there is no kernel %s\n", name.c_str());
  std::exit(2);
}

std::string all_of(const char *path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", path);
    std::exit(2);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

unsigned char hex(const std::string &text, std::size_t at) {
  return static_cast<unsigned char>(std::stoi(text.substr(2 * at, 2), nullptr, 16));
}

// name kernel grid(3) block(3) shared count, then for each parameter: "value" and its bytes in hexadecimal, or
// "array" with its bytes, where they are in DATA (-1: nowhere, it is filled with 0xFF) and whether it is read back.
bool run(std::istream &job, const std::string &data, std::ofstream &output) {
  std::string name, kernel;
  dim3 grid, block;
  std::size_t shared, count;
  if (!(job >> name >> kernel >> grid.x >> grid.y >> grid.z >> block.x >> block.y >> block.z >> shared >> count)) return false;
  std::vector<Array> arrays;
  std::vector<std::vector<unsigned char>> values(count);
  for (std::vector<unsigned char> &value : values) {
    std::string kind;
    job >> kind;
    if (kind == "value") {
      std::string text;
      job >> text;
      for (std::size_t i = 0; i < text.size() / 2; i++) value.push_back(hex(text, i));
      continue;
    }
    Array array;
    long long at;
    job >> array.bytes >> at >> array.read_back;
    must(cudaMalloc(&array.device, array.bytes), name);
    // No cudaMemset: a driver may use a kernel of its own for it, and kernels are what is counted.
    std::string begins = at < 0 ? std::string(array.bytes, '\xFF') : data.substr(static_cast<std::size_t>(at), array.bytes);
    must(cudaMemcpy(array.device, begins.data(), begins.size(), cudaMemcpyHostToDevice), name);
    const unsigned char *address = reinterpret_cast<const unsigned char *>(&array.device);
    value.assign(address, address + sizeof array.device);
    arrays.push_back(array);
  }
  std::vector<void *> pointers;
  for (std::vector<unsigned char> &value : values) pointers.push_back(value.data());
  const void *function = find(kernel);
  if (shared > 48 * 1024)
    must(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)), name);
  must(cudaLaunchKernel(function, grid, block, pointers.data(), shared, nullptr), name);
  must(cudaDeviceSynchronize(), name);
  for (const Array &array : arrays) {
    if (array.read_back) {
      std::vector<char> back(array.bytes);
      must(cudaMemcpy(back.data(), array.device, array.bytes, cudaMemcpyDeviceToHost), name);
      output.write(back.data(), static_cast<std::streamsize>(back.size()));
    }
    must(cudaFree(array.device), name);
  }
  return true;
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 4) return std::fprintf(stderr, "agreement JOB DATA OUTPUT\n"), 2;
  std::ifstream job(arguments[1]);
  std::string data = all_of(arguments[2]);
  std::ofstream output(arguments[3], std::ios::binary);
  int done = 0;
  while (run(job, data, output)) done++;
  std::printf("%d cases\n", done);
  return output ? 0 : 1;
}
