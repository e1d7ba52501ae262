/* The part of cublas_v2.h without the names that have no suffix; here it is all of it. */
#include <cublas_v2.h>
