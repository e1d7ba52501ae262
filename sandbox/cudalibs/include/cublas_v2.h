/* cuBLAS v2 as Kernelwright offers it, for machines without NVIDIA's own header, which is used where there is one.
   Names, numbers and arguments are those of NVIDIA's documentation. */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_
#define CUBLAS_API_H_

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stddef.h>
#include <stdint.h>

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION 130000
#define CUBLASWINAPI

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
    CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO1 = 1,
    CUBLAS_GEMM_ALGO2 = 2,
    CUBLAS_GEMM_ALGO3 = 3,
    CUBLAS_GEMM_ALGO4 = 4,
    CUBLAS_GEMM_ALGO5 = 5,
    CUBLAS_GEMM_ALGO6 = 6,
    CUBLAS_GEMM_ALGO7 = 7,
    CUBLAS_GEMM_ALGO8 = 8,
    CUBLAS_GEMM_ALGO9 = 9,
    CUBLAS_GEMM_ALGO10 = 10,
    CUBLAS_GEMM_ALGO11 = 11,
    CUBLAS_GEMM_ALGO12 = 12,
    CUBLAS_GEMM_ALGO13 = 13,
    CUBLAS_GEMM_ALGO14 = 14,
    CUBLAS_GEMM_ALGO15 = 15,
    CUBLAS_GEMM_ALGO16 = 16,
    CUBLAS_GEMM_ALGO17 = 17,
    CUBLAS_GEMM_ALGO18 = 18,
    CUBLAS_GEMM_ALGO19 = 19,
    CUBLAS_GEMM_ALGO20 = 20,
    CUBLAS_GEMM_ALGO21 = 21,
    CUBLAS_GEMM_ALGO22 = 22,
    CUBLAS_GEMM_ALGO23 = 23,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO1_TENSOR_OP = 101,
    CUBLAS_GEMM_ALGO2_TENSOR_OP = 102,
    CUBLAS_GEMM_ALGO3_TENSOR_OP = 103,
    CUBLAS_GEMM_ALGO4_TENSOR_OP = 104,
    CUBLAS_GEMM_ALGO5_TENSOR_OP = 105,
    CUBLAS_GEMM_ALGO6_TENSOR_OP = 106,
    CUBLAS_GEMM_ALGO7_TENSOR_OP = 107,
    CUBLAS_GEMM_ALGO8_TENSOR_OP = 108,
    CUBLAS_GEMM_ALGO9_TENSOR_OP = 109,
    CUBLAS_GEMM_ALGO10_TENSOR_OP = 110,
    CUBLAS_GEMM_ALGO11_TENSOR_OP = 111,
    CUBLAS_GEMM_ALGO12_TENSOR_OP = 112,
    CUBLAS_GEMM_ALGO13_TENSOR_OP = 113,
    CUBLAS_GEMM_ALGO14_TENSOR_OP = 114,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef cudaDataType cublasDataType_t;

typedef struct cublasContext *cublasHandle_t;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasScopy cublasScopy_v2
#define cublasSswap cublasSswap_v2
#define cublasSscal cublasSscal_v2
#define cublasSrot cublasSrot_v2
#define cublasSgemv cublasSgemv_v2
#define cublasSsymv cublasSsymv_v2
#define cublasSsyr cublasSsyr_v2
#define cublasSsyr2 cublasSsyr2_v2
#define cublasStrmv cublasStrmv_v2
#define cublasStrsv cublasStrsv_v2
#define cublasSgemm cublasSgemm_v2
#define cublasSsymm cublasSsymm_v2
#define cublasSsyrk cublasSsyrk_v2
#define cublasSsyr2k cublasSsyr2k_v2
#define cublasStrsm cublasStrsm_v2
#define cublasStrmm cublasStrmm_v2
#define cublasDaxpy cublasDaxpy_v2
#define cublasDcopy cublasDcopy_v2
#define cublasDswap cublasDswap_v2
#define cublasDscal cublasDscal_v2
#define cublasDrot cublasDrot_v2
#define cublasDgemv cublasDgemv_v2
#define cublasDsymv cublasDsymv_v2
#define cublasDsyr cublasDsyr_v2
#define cublasDsyr2 cublasDsyr2_v2
#define cublasDtrmv cublasDtrmv_v2
#define cublasDtrsv cublasDtrsv_v2
#define cublasDgemm cublasDgemm_v2
#define cublasDsymm cublasDsymm_v2
#define cublasDsyrk cublasDsyrk_v2
#define cublasDsyr2k cublasDsyr2k_v2
#define cublasDtrsm cublasDtrsm_v2
#define cublasDtrmm cublasDtrmm_v2
#define cublasCaxpy cublasCaxpy_v2
#define cublasCcopy cublasCcopy_v2
#define cublasCswap cublasCswap_v2
#define cublasCscal cublasCscal_v2
#define cublasCrot cublasCrot_v2
#define cublasCgemv cublasCgemv_v2
#define cublasCsymv cublasCsymv_v2
#define cublasCsyr cublasCsyr_v2
#define cublasCsyr2 cublasCsyr2_v2
#define cublasCtrmv cublasCtrmv_v2
#define cublasCtrsv cublasCtrsv_v2
#define cublasCgemm cublasCgemm_v2
#define cublasCsymm cublasCsymm_v2
#define cublasCsyrk cublasCsyrk_v2
#define cublasCsyr2k cublasCsyr2k_v2
#define cublasCtrsm cublasCtrsm_v2
#define cublasCtrmm cublasCtrmm_v2
#define cublasZaxpy cublasZaxpy_v2
#define cublasZcopy cublasZcopy_v2
#define cublasZswap cublasZswap_v2
#define cublasZscal cublasZscal_v2
#define cublasZrot cublasZrot_v2
#define cublasZgemv cublasZgemv_v2
#define cublasZsymv cublasZsymv_v2
#define cublasZsyr cublasZsyr_v2
#define cublasZsyr2 cublasZsyr2_v2
#define cublasZtrmv cublasZtrmv_v2
#define cublasZtrsv cublasZtrsv_v2
#define cublasZgemm cublasZgemm_v2
#define cublasZsymm cublasZsymm_v2
#define cublasZsyrk cublasZsyrk_v2
#define cublasZsyr2k cublasZsyr2k_v2
#define cublasZtrsm cublasZtrsm_v2
#define cublasZtrmm cublasZtrmm_v2
#define cublasIsamax cublasIsamax_v2
#define cublasIsamin cublasIsamin_v2
#define cublasIdamax cublasIdamax_v2
#define cublasIdamin cublasIdamin_v2
#define cublasIcamax cublasIcamax_v2
#define cublasIcamin cublasIcamin_v2
#define cublasIzamax cublasIzamax_v2
#define cublasIzamin cublasIzamin_v2
#define cublasSnrm2 cublasSnrm2_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasScnrm2 cublasScnrm2_v2
#define cublasDznrm2 cublasDznrm2_v2
#define cublasSasum cublasSasum_v2
#define cublasDasum cublasDasum_v2
#define cublasScasum cublasScasum_v2
#define cublasDzasum cublasDzasum_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasCdotu cublasCdotu_v2
#define cublasCdotc cublasCdotc_v2
#define cublasZdotu cublasZdotu_v2
#define cublasZdotc cublasZdotc_v2
#define cublasCsscal cublasCsscal_v2
#define cublasZdscal cublasZdscal_v2
#define cublasCsrot cublasCsrot_v2
#define cublasZdrot cublasZdrot_v2
#define cublasSger cublasSger_v2
#define cublasDger cublasDger_v2
#define cublasCgeru cublasCgeru_v2
#define cublasCgerc cublasCgerc_v2
#define cublasZgeru cublasZgeru_v2
#define cublasZgerc cublasZgerc_v2
#define cublasChemv cublasChemv_v2
#define cublasCher cublasCher_v2
#define cublasCher2 cublasCher2_v2
#define cublasChemm cublasChemm_v2
#define cublasCherk cublasCherk_v2
#define cublasCher2k cublasCher2k_v2
#define cublasZhemv cublasZhemv_v2
#define cublasZher cublasZher_v2
#define cublasZher2 cublasZher2_v2
#define cublasZhemm cublasZhemm_v2
#define cublasZherk cublasZherk_v2
#define cublasZher2k cublasZher2k_v2

#ifdef __cplusplus
extern "C" {
#endif

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType which, int *value);
size_t cublasGetCudartVersion(void);
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetVector(int n, int element, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasGetVector(int n, int element, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasSetVectorAsync(int n, int element, const void *x, int incx, void *y, int incy, cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int element, const void *x, int incx, void *y, int incy, cudaStream_t stream);
cublasStatus_t cublasSetMatrix(int rows, int columns, int element, const void *A, int lda, void *B, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int element, const void *A, int lda, void *B, int ldb);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element, const void *A, int lda, void *B, int ldb, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element, const void *A, int lda, void *B, int ldb, cudaStream_t stream);

/* Vectors. */
#define KW_EXTREME(NAME, T) cublasStatus_t cublas##NAME##_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result);
KW_EXTREME(Isamax, float) KW_EXTREME(Idamax, double) KW_EXTREME(Icamax, cuComplex) KW_EXTREME(Izamax, cuDoubleComplex)
KW_EXTREME(Isamin, float) KW_EXTREME(Idamin, double) KW_EXTREME(Icamin, cuComplex) KW_EXTREME(Izamin, cuDoubleComplex)
#define KW_SUM(NAME, T, REAL) cublasStatus_t cublas##NAME##_v2(cublasHandle_t handle, int n, const T *x, int incx, REAL *result);
KW_SUM(Sasum, float, float) KW_SUM(Dasum, double, double) KW_SUM(Scasum, cuComplex, float)
KW_SUM(Dzasum, cuDoubleComplex, double) KW_SUM(Snrm2, float, float) KW_SUM(Dnrm2, double, double)
KW_SUM(Scnrm2, cuComplex, float) KW_SUM(Dznrm2, cuDoubleComplex, double)
#define KW_DOT(NAME, T) \
    cublasStatus_t cublas##NAME##_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, T *result);
KW_DOT(Sdot, float) KW_DOT(Ddot, double) KW_DOT(Cdotu, cuComplex) KW_DOT(Cdotc, cuComplex)
KW_DOT(Zdotu, cuDoubleComplex) KW_DOT(Zdotc, cuDoubleComplex)
#define KW_BY_REAL(SCALE, ROTATE, T, REAL) \
    cublasStatus_t cublas##SCALE##_v2(cublasHandle_t handle, int n, const REAL *alpha, T *x, int incx); \
    cublasStatus_t cublas##ROTATE##_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy, const REAL *c, const REAL *s);
KW_BY_REAL(Csscal, Csrot, cuComplex, float) KW_BY_REAL(Zdscal, Zdrot, cuDoubleComplex, double)

/* What all four types have. */
#define KW_ALL(L, T, REAL) \
    cublasStatus_t cublas##L##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y, int incy); \
    cublasStatus_t cublas##L##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy); \
    cublasStatus_t cublas##L##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy); \
    cublasStatus_t cublas##L##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx); \
    cublasStatus_t cublas##L##rot_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy, const REAL *c, const T *s); \
    cublasStatus_t cublas##L##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha, \
        const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy); \
    cublasStatus_t cublas##L##gemvBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha, \
        const T *const Aarray[], int lda, const T *const xarray[], int incx, const T *beta, T *const yarray[], int incy, \
        int batchCount); \
    cublasStatus_t cublas##L##gemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, \
        const T *alpha, const T *A, int lda, long long int strideA, const T *x, int incx, long long int stridex, \
        const T *beta, T *y, int incy, long long int stridey, int batchCount); \
    cublasStatus_t cublas##L##symv_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *A, \
        int lda, const T *x, int incx, const T *beta, T *y, int incy); \
    cublasStatus_t cublas##L##syr_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *x, \
        int incx, T *A, int lda); \
    cublasStatus_t cublas##L##syr2_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *x, \
        int incx, const T *y, int incy, T *A, int lda); \
    cublasStatus_t cublas##L##trmv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, \
        cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx); \
    cublasStatus_t cublas##L##trsv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, \
        cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx); \
    cublasStatus_t cublas##L##gemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, \
        int n, int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##symm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, \
        const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##syrk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, \
        const T *alpha, const T *A, int lda, const T *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##syr2k_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, \
        int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
        cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha, const T *A, int lda, T *B, int ldb); \
    cublasStatus_t cublas##L##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
        cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha, const T *const A[], int lda, \
        T *const B[], int ldb, int batchCount); \
    cublasStatus_t cublas##L##trmm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, \
        cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha, const T *A, int lda, const T *B, \
        int ldb, T *C, int ldc); \
    cublasStatus_t cublas##L##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, \
        const T *alpha, const T *A, int lda, const T *beta, const T *B, int ldb, T *C, int ldc); \
    cublasStatus_t cublas##L##dgmm(cublasHandle_t handle, cublasSideMode_t mode, int m, int n, const T *A, int lda, \
        const T *x, int incx, T *C, int ldc); \
    cublasStatus_t cublas##L##getrfBatched(cublasHandle_t handle, int n, T *const A[], int lda, int *P, int *info, \
        int batchSize); \
    cublasStatus_t cublas##L##getriBatched(cublasHandle_t handle, int n, const T *const A[], int lda, const int *P, \
        T *const C[], int ldc, int *info, int batchSize); \
    cublasStatus_t cublas##L##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs, \
        const T *const Aarray[], int lda, const int *devIpiv, T *const Barray[], int ldb, int *info, int batchSize); \
    cublasStatus_t cublas##L##matinvBatched(cublasHandle_t handle, int n, const T *const A[], int lda, T *const Ainv[], \
        int lda_inv, int *info, int batchSize);
KW_ALL(S, float, float) KW_ALL(D, double, double) KW_ALL(C, cuComplex, float) KW_ALL(Z, cuDoubleComplex, double)

#define KW_GER(NAME, T) \
    cublasStatus_t cublas##NAME##_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx, const T *y, \
        int incy, T *A, int lda);
KW_GER(Sger, float) KW_GER(Dger, double) KW_GER(Cgeru, cuComplex) KW_GER(Cgerc, cuComplex)
KW_GER(Zgeru, cuDoubleComplex) KW_GER(Zgerc, cuDoubleComplex)

#define KW_HERMITIAN(L, T, REAL) \
    cublasStatus_t cublas##L##hemv_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *A, \
        int lda, const T *x, int incx, const T *beta, T *y, int incy); \
    cublasStatus_t cublas##L##her_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const REAL *alpha, const T *x, \
        int incx, T *A, int lda); \
    cublasStatus_t cublas##L##her2_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *x, \
        int incx, const T *y, int incy, T *A, int lda); \
    cublasStatus_t cublas##L##hemm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, \
        const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##herk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, \
        const REAL *alpha, const T *A, int lda, const REAL *beta, T *C, int ldc); \
    cublasStatus_t cublas##L##her2k_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, \
        int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const REAL *beta, T *C, int ldc);
KW_HERMITIAN(C, cuComplex, float) KW_HERMITIAN(Z, cuDoubleComplex, double)

#define KW_BATCHED(L, T) \
    cublasStatus_t cublas##L##gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, \
        int n, int k, const T *alpha, const T *const Aarray[], int lda, const T *const Barray[], int ldb, const T *beta, \
        T *const Carray[], int ldc, int batchCount); \
    cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
        int m, int n, int k, const T *alpha, const T *A, int lda, long long int strideA, const T *B, int ldb, \
        long long int strideB, const T *beta, T *C, int ldc, long long int strideC, int batchCount);
KW_BATCHED(S, float) KW_BATCHED(D, double) KW_BATCHED(C, cuComplex) KW_BATCHED(Z, cuDoubleComplex) KW_BATCHED(H, __half)

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const __half *alpha, const __half *A, int lda, const __half *B, int ldb, const __half *beta, __half *C, int ldc);
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const float *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
    const float *beta, void *C, cudaDataType Ctype, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
    const void *beta, void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
    int k, const void *alpha, const void *const Aarray[], cudaDataType Atype, int lda, const void *const Barray[],
    cudaDataType Btype, int ldb, const void *beta, void *const Carray[], cudaDataType Ctype, int ldc, int batchCount,
    cublasComputeType_t computeType, cublasGemmAlgo_t algo);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
    int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda, long long int strideA, const void *B,
    cudaDataType Btype, int ldb, long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
    long long int strideC, int batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo);

cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx, void *result,
    cudaDataType resultType, cudaDataType executionType);
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx, const void *y,
    cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType);
cublasStatus_t cublasDotcEx(cublasHandle_t handle, int n, const void *x, cudaDataType xType, int incx, const void *y,
    cudaDataType yType, int incy, void *result, cudaDataType resultType, cudaDataType executionType);
cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType alphaType, const void *x,
    cudaDataType xType, int incx, void *y, cudaDataType yType, int incy, cudaDataType executiontype);
cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType alphaType, void *x,
    cudaDataType xType, int incx, cudaDataType executionType);

#undef KW_EXTREME
#undef KW_SUM
#undef KW_DOT
#undef KW_BY_REAL
#undef KW_ALL
#undef KW_GER
#undef KW_HERMITIAN
#undef KW_BATCHED

#ifdef __cplusplus
}

/* Older programs name the type of the sums by a cudaDataType. */
inline cublasComputeType_t kwComputeType(cudaDataType type) {
    switch (type) {
    case CUDA_R_16F: return CUBLAS_COMPUTE_16F;
    case CUDA_R_64F: case CUDA_C_64F: return CUBLAS_COMPUTE_64F;
    case CUDA_R_32I: case CUDA_C_32I: return CUBLAS_COMPUTE_32I;
    default: return CUBLAS_COMPUTE_32F;
    }
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
    int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb,
    const void *beta, void *C, cudaDataType Ctype, int ldc, cudaDataType computeType, cublasGemmAlgo_t algo) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
        kwComputeType(computeType), algo);
}
inline cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
    int n, int k, const void *alpha, const void *const Aarray[], cudaDataType Atype, int lda, const void *const Barray[],
    cudaDataType Btype, int ldb, const void *beta, void *const Carray[], cudaDataType Ctype, int ldc, int batchCount,
    cudaDataType computeType, cublasGemmAlgo_t algo) {
    return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, Aarray, Atype, lda, Barray, Btype, ldb, beta, Carray,
        Ctype, ldc, batchCount, kwComputeType(computeType), algo);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda, long long int strideA, const void *B,
    cudaDataType Btype, int ldb, long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
    long long int strideC, int batchCount, cudaDataType computeType, cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB,
        beta, C, Ctype, ldc, strideC, batchCount, kwComputeType(computeType), algo);
}
#endif

#endif
