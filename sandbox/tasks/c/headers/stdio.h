#ifndef KERNELWRIGHT_STDIO_H
#define KERNELWRIGHT_STDIO_H
#include <stddef.h>
typedef struct kernelwright_file FILE;
extern FILE *stdin;
extern FILE *stdout;
extern FILE *stderr;
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int sprintf(char *text, const char *format, ...);
int snprintf(char *text, size_t bytes, const char *format, ...);
int scanf(const char *format, ...);
int fscanf(FILE *file, const char *format, ...);
int puts(const char *text);
int putchar(int character);
int fputs(const char *text, FILE *file);
int fflush(FILE *file);
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *file);
void perror(const char *text);
#endif
