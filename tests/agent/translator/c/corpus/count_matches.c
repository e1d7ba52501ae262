#include <stddef.h>
long count_matches(size_t n, const int *a, int key) {
    long count = 0;
    for (size_t i = 0; i < n; ++i)
        if (a[i] == key) ++count;
    return count;
}
