/* What pycparser needs of <stddef.h>; compilations use the system's own. */
#ifndef KERNELWRIGHT_STDDEF_H
#define KERNELWRIGHT_STDDEF_H
typedef unsigned long size_t;
typedef long ptrdiff_t;
#define NULL ((void *)0)
#endif
