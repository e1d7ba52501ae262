#include "texture.h"

namespace kw {
namespace {

template <class Object>
u64 add_to(std::deque<std::optional<Object>>& table, const Object& object) {
  for (size_t index = 0; index < table.size(); ++index)
    if (!table[index]) {
      table[index] = object;
      return index + 1;
    }
  table.emplace_back(object);
  return table.size();
}

template <class Object>
const Object* find_in(const std::deque<std::optional<Object>>& table, u64 handle) {
  return handle && handle <= table.size() && table[handle - 1] ? &*table[handle - 1] : nullptr;
}

template <class Object>
bool remove_from(std::deque<std::optional<Object>>& table, u64 handle) {
  if (!find_in(table, handle)) return false;
  table[handle - 1].reset();
  return true;
}

}  // namespace

u64 ImageTable::add(const Texture& texture) { return add_to(textures_, texture); }
u64 ImageTable::add(const Surface& surface) { return add_to(surfaces_, surface); }
bool ImageTable::remove_texture(u64 handle) { return remove_from(textures_, handle); }
bool ImageTable::remove_surface(u64 handle) { return remove_from(surfaces_, handle); }
const Texture* ImageTable::texture(u64 handle) const { return find_in(textures_, handle); }
const Surface* ImageTable::surface(u64 handle) const { return find_in(surfaces_, handle); }

void ImageTable::clear() {
  textures_.clear();
  surfaces_.clear();
}

}  // namespace kw
