#ifndef KERNELWRIGHT_STDLIB_H
#define KERNELWRIGHT_STDLIB_H
#include <stddef.h>
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *block, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **block, size_t alignment, size_t bytes);
void free(void *block);
int abs(int value);
long labs(long value);
long long llabs(long long value);
int rand(void);
void srand(unsigned int seed);
int atoi(const char *text);
long atol(const char *text);
double atof(const char *text);
long strtol(const char *text, char **end, int base);
double strtod(const char *text, char **end);
void qsort(void *base, size_t count, size_t bytes, int (*compare)(const void *, const void *));
void abort(void);
void exit(int status);
#endif
