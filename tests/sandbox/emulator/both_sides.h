// One set of functions for a GPU and for this machine: test_both_sides.py compiles them with nvcc and with g++.
//
// Defined by whoever includes this: INLINE and CALLED, how a function is declared that is inlined or never is;
// ONES(x) and ZEROS(x), set bits and leading zeros of 64; and BOTH(name, expression), one test of a, b and c.
#include <cmath>
#include <cstring>

typedef unsigned long long u64;
typedef long long i64;
typedef unsigned u32;
typedef int i32;
typedef unsigned short u16;
typedef short i16;
typedef unsigned char u8;
typedef signed char i8;

INLINE float F(u64 a) {
  u32 x = (u32)a;
  float f;
  memcpy(&f, &x, 4);
  return f;
}
INLINE double D(u64 a) {
  double f;
  memcpy(&f, &a, 8);
  return f;
}
INLINE u64 B(float f) {
  u32 x;
  memcpy(&x, &f, 4);
  return f != f ? 0x7fc00000u : x;
}
INLINE u64 B(double f) {
  u64 x;
  memcpy(&x, &f, 8);
  return f != f ? 0x7ff8000000000000ull : x;
}
INLINE u64 ones_and_zeros(u64 a) { return ONES(a) * 100 + ZEROS(a); }

CALLED u64 sw(u32 k, u32 x) {
  switch (k) {
    case 0:
      return x + 1;
    case 1:
      return x * 3;
    case 2:
      x ^= 5;
      break;
    case 3:
      x -= 9;
      break;
    case 4:
      return x >> 3;
    case 5:
      return x << 2;
    case 6:
      x |= 77;
      break;
    case 7:
      x &= 0xff;
      break;
    case 8:
      return ~x;
    case 9:
      return 0u - x;
    case 10:
      x = x % 17;
      break;
    case 11:
      return x / 5;
    default:
      x = 42;
  }
  return x + 100;
}
CALLED u64 loopbrk(u32 a, u32 b, u32 c) {
  u32 s = 0;
  for (u32 i = 0; i < (a & 63); i++) {
    if ((i ^ b) % 7 == 3) continue;
    if ((s & 0xff) == (c & 0xff)) break;
    for (u32 j = 0; j < (b & 15); j++) {
      if (j == (c & 7)) {
        s += 11;
        break;
      }
      if (((i + j) & 3) == 1) continue;
      s = s * 31 + j;
      if ((s & 1023) == 5) return s + 999;
    }
    s += i;
  }
  return s;
}
CALLED u64 nest(u32 a, u32 b) {
  u32 s = 0;
  u32 i = a & 31;
  while (i) {
    i--;
    if (i & 1) {
      if (b & (1u << i)) {
        s += 3;
        if (s % 5 == 0) continue;
      } else {
        s ^= i;
      }
    } else {
      do {
        s += i + 1;
        if (s > 200) break;
      } while (s < 50);
      if ((b >> i) & 1) goto out;
    }
    s *= 2;
  }
out:
  return s;
}
CALLED u64 localarr(u32 a, u32 b, u32 c) {
  u32 t[16];
  for (int i = 0; i < 16; i++) t[i] = a * (i + 1);
  for (int i = 0; i < 20; i++) {
    u32 j = (b >> (i & 15)) & 15, k = (c >> (i & 15)) & 15;
    u32 x = t[j];
    t[j] = t[k] + i;
    t[k] = x;
  }
  u32 s = 0;
  for (int i = 0; i < 16; i++) s = s * 33 + t[(i * 5 + a) & 15];
  return s;
}
CALLED u64 un(u32 a, u32 b) {
  union {
    u32 u;
    float f;
    unsigned short h[2];
    unsigned char c[4];
  } x;
  x.u = a;
  x.h[b & 1] ^= (unsigned short)b;
  x.c[(b >> 1) & 3] += 3;
  return x.u + (x.f < 0 ? 1 : 0);
}
struct S3 {
  u64 a;
  unsigned short b;
  signed char c;
  unsigned d;
};
CALLED S3 mk(u64 a, u64 b) {
  S3 s;
  s.a = a ^ b;
  s.b = (unsigned short)(a + b);
  s.c = (signed char)b;
  s.d = (u32)(a >> 7);
  return s;
}
CALLED u64 structs(u64 a, u64 b, u64 c) {
  S3 s = mk(a, b);
  S3 t = mk(b, c);
  S3 q = (c & 1) ? s : t;
  return q.a + q.b + q.c + q.d;
}
CALLED u64 collatz(u32 n) {
  u32 k = 0;
  while (n != 1 && k < 500) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    k++;
  }
  return k;
}
CALLED u64 gcd_(u32 a, u32 b) {
  while (b) {
    u32 t = a % b;
    a = b;
    b = t;
  }
  return a;
}
CALLED u64 lcg(u32 a, u32 n) {
  for (u32 i = 0; i < n; i++) a = a * 1664525u + 1013904223u;
  return a;
}
CALLED u64 gotos(u32 a, u32 b) {
  u32 j = 0, s = 0;
  if (a & 1) goto L2;
L1:
  j++;
  s += b & 7;
  if (j > (a % 9)) goto E;
L2:
  j += 2;
  s ^= j * b;
  if (j < (b % 23)) goto L1;
E:
  return s * 64 + j;
}
CALLED u64 early(u32 a, u32 b) {
  if (a % 3 == 0) return 1;
  if (b % 3 == 0) {
    for (u32 i = 0; i < (a & 15); i++) {
      if (i * i > (b & 63)) return i + 2;
    }
    return 7;
  }
  if (a % 5 == 0) return b;
  return a ^ b;
}
CALLED u32 leaf(u32 a, u32 b) {
  if ((a ^ b) & 1) return a * b + 1;
  u32 s = 0;
  for (u32 i = 0; i < (a & 7); i++) s += b >> i;
  return s;
}
CALLED u64 call2(u32 a, u32 b) {
  u32 s = 0;
  if (a & 2)
    s = leaf(a, b);
  else if (b & 2)
    s = leaf(b, a) * 3;
  for (u32 i = 0; i < (b & 3); i++) s += leaf(s, i + a);
  return s;
}
CALLED u64 hash64(u64 a, u64 b) {
  a ^= a >> 33;
  a *= 0xff51afd7ed558ccdull;
  a ^= a >> 33;
  a *= 0xc4ceb9fe1a85ec53ull;
  a ^= b >> 29;
  return a;
}
CALLED u64 bytes(u64 a, u64 b) {
  unsigned char x[8], y[8];
  memcpy(x, &a, 8);
  memcpy(y, &b, 8);
  u64 s = 0;
  for (int i = 0; i < 8; i++) {
    unsigned char t = x[i] > y[i] ? x[i] - y[i] : (unsigned char)(y[i] + x[7 - i]);
    s = s << 8 | t;
  }
  return s;
}
CALLED u64 dowh(u32 a, u32 b) {
  u32 n = 0;
  do {
    a = (a >> 1) ^ ((0u - (a & 1)) & 0xedb88320u);
    n++;
    if (n > (b & 63)) break;
  } while (a & 0xff);
  return (u64)n << 32 | a;
}
CALLED u64 swfall(u32 k, u32 x) {
  u32 s = 0;
  switch (k) {
    case 8:
      s += x;
    case 7:
      s ^= 3;
    case 6:
      s *= 5;
      if (x & 1) break;
    case 5:
      s += 9;
    case 4:
      s <<= 1;
      break;
    case 3:
      s = x;
    case 2:
      s += 2;
    case 1:
      return s;
    default:
      s = ~x;
  }
  return s;
}
CALLED u64 lookup(u32 a, u32 b) {
  const unsigned char T[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  const int U[7] = {-1, 2, -3, 4, -5, 6, -7};
  return (u64)(T[a % 12] + U[b % 7] * (int)(a % 100));
}
CALLED u64 u8loop(unsigned char a, unsigned char b) {
  unsigned char s = 0;
  for (unsigned char i = a; i != b; i += 3) {
    s += i;
    if (s > 250) break;
    if (i == (unsigned char)(b + 1) || i == (unsigned char)(b + 2)) break;
  }
  return s;
}
CALLED u64 i16arr(u32 a, u32 b) {
  short t[8];
  for (int i = 0; i < 8; i++) t[i] = (short)(a >> (i * 3));
  signed char q[8];
  for (int i = 0; i < 8; i++) q[i] = (signed char)(t[(i + b) & 7] >> 2);
  int s = 0;
  for (int i = 0; i < 8; i++) s = s * 7 + q[(i * 3 + a) & 7] + t[i];
  return (unsigned)s;
}
CALLED float fexpr(float a, float b, float c) {
  float s = 0;
  for (int i = 0; i < 4; i++) {
    s = s * a;
    s = s + b;
    if (s > c)
      s = s - c;
    else if (!(s <= c))
      return -1.f;
  }
  return s;
}

BOTH(sshl, (u64)(u32)((i32)(u32)a << (b & 31)))
BOTH(sshr, (u64)((i64)((i32)a >> (b & 31))))
BOTH(sshr64, (u64)((i64)a >> (b & 63)))
BOTH(ushr16, (u64)(u16)((u16)a >> (b & 15)))
BOTH(sshr16, (u64)((i16)a >> (b & 15)))
BOTH(sshr8, (u64)((i8)a >> (b & 7)))
BOTH(mulhi_i128, (u64)(((__int128)(i64)a * (__int128)(i64)b) >> 64))
BOTH(mulhi_u128, (u64)(((unsigned __int128)a * (unsigned __int128)b) >> 64))
BOTH(add128, (u64)((((unsigned __int128)a << 64 | b) + ((unsigned __int128)c << 64 | a)) >> 64))
BOTH(sub128, (u64)((((unsigned __int128)a << 64 | b) - ((unsigned __int128)c << 64 | a)) >> 64))
BOTH(mul128, (u64)((((unsigned __int128)a << 64 | b) * ((unsigned __int128)c << 64 | a)) >> 64))
BOTH(shl128, (u64)((((unsigned __int128)a << 64 | b) << (c & 127)) >> 64))
BOTH(shr128, (u64)((((__int128)((unsigned __int128)a << 64 | b)) >> (c & 127))))
BOTH(div128, (u64)(((unsigned __int128)a << 64 | b) / ((unsigned __int128)c | 1)))
BOTH(div128s, (u64)(((unsigned __int128)(a & 1023) << 64 | b) / (((unsigned __int128)(c & 0xffff) << 60) | (b | 1))))
BOTH(rem128, (u64)(((unsigned __int128)a << 64 | b) % (((unsigned __int128)(c & 0xffffff) << 50) | 1)))
BOTH(div7, (u64)(i64)((i32)a / 7))
BOTH(div10u, (u64)((u32)a / 10))
BOTH(mod10, (u64)(i64)((i32)a % 10))
BOTH(div3_64, (u64)((i64)a / 3))
BOTH(mod1000_64, (u64)(a % 1000))
BOTH(divm7, (u64)(i64)((i32)a / -7))
BOTH(div16c, (u64)(i64)((i16)a / 13))
BOTH(div8c, (u64)(i64)((i8)a / 5))
BOTH(divv, (u32)b ? (u64)((u32)a / (u32)b) : 0)
BOTH(divsv, ((i32)b && !((i32)b == -1)) ? (u64)(i64)((i32)a / (i32)b) : 0)
BOTH(mod64v, b ? (a % b) : 0)
BOTH(div64v, (b && b != ~0ull) ? (u64)((i64)a / (i64)b) : 0)
BOTH(cmpu, (u64)((u32)a < (u32)b) | (u64)((i32)a < (i32)b) << 1 | (u64)(a < b) << 2 | (u64)((i64)a < (i64)b) << 3 |
               (u64)((u16)a < (u16)b) << 4 | (u64)((i16)a < (i16)b) << 5 | (u64)((u8)a < (u8)b) << 6 |
               (u64)((i8)a < (i8)b) << 7)
BOTH(narrow, (u64)(u8)((u8)a + (u8)b) | (u64)(u16)((u16)a * (u16)b) << 16 | (u64)(u8)((i8)a * (i8)b) << 40)
BOTH(signext, (u64)(i64)(i8)a ^ (u64)(i64)(i16)b ^ (u64)(i64)(i32)c)
BOTH(boolarith, (u64)((bool)(a & 3) + (bool)(b & 1) * 2 + (bool)(c & 4) * 4 + !(a & 1) * 8))
BOTH(ternary, a > b ? (c > a ? a : c) : (c < b ? b : c))
BOTH(minmaxi, (u64)(u32)((i32)a < (i32)b ? (i32)a : (i32)b) | (u64)((u32)a > (u32)b ? (u32)a : (u32)b) << 32)
BOTH(absi, (u64)(u32)((i32)a < 0 ? 0u - (u32)a : (u32)a))
BOTH(rot, (u64)(((u32)a << (b & 31)) | ((u32)a >> ((32 - (b & 31)) & 31))))
BOTH(rot64, (a << (b & 63)) | (a >> ((64 - (b & 63)) & 63)))
BOTH(popclz, (u64)ones_and_zeros(a))
BOTH(bitfield, (a >> (b & 31)) & ((1ull << (c & 15)) - 1))
BOTH(fadd, B(F(a) + F(b)))
BOTH(fmul, B(F(a) * F(b)))
BOTH(fdiv, B(F(a) / F(b)))
BOTH(fsqrt, B(sqrtf(F(a))))
BOTH(ffma, B(fmaf(F(a), F(b), F(c))))
BOTH(dadd, B(D(a) + D(b)))
BOTH(dmul, B(D(a) * D(b)))
BOTH(ddiv, B(D(a) / D(b)))
BOTH(dsqrt, B(sqrt(D(a))))
BOTH(dfma, B(fma(D(a), D(b), D(c))))
BOTH(fmin_, B(fminf(F(a), F(b)) + 0.0f))
BOTH(fmax_, B(fmaxf(F(a), F(b)) + 0.0f))
BOTH(dmin_, B(fmin(D(a), D(b)) + 0.0))
BOTH(fcmp, (u64)(F(a) < F(b)) | (u64)(F(a) <= F(b)) << 1 | (u64)(F(a) == F(b)) << 2 | (u64)(F(a) != F(b)) << 3 |
               (u64) !(F(a) < F(b)) << 4 | (u64) !(F(a) >= F(b)) << 5 | (u64)(F(a) != F(a)) << 6 |
               (u64) !(F(a) == F(b)) << 7)
BOTH(dcmp, (u64)(D(a) < D(b)) | (u64)(D(a) <= D(b)) << 1 | (u64)(D(a) == D(b)) << 2 | (u64)(D(a) != D(b)) << 3 |
               (u64) !(D(a) < D(b)) << 4 | (u64) !(D(a) >= D(b)) << 5)
BOTH(ftern, B(F(a) > F(b) ? F(a) : F(c)))
BOTH(fneg, B(-F(a)) ^ B(fabsf(F(b))))
BOTH(fround, B(floorf(F(a))) ^ B(ceilf(F(b))) << 1 ^ B(truncf(F(c))) << 2 ^ B(rintf(F(a))) << 3)
BOTH(froundf, B(roundf(F(a))))
BOTH(dround, B(floor(D(a))) ^ B(rint(D(b))) << 1)
BOTH(f2d, B((double)F(a)))
BOTH(d2f, B((float)D(a)))
BOTH(i2f, B((float)(i32)a))
BOTH(u2f, B((float)(u32)a))
BOTH(l2f, B((float)(i64)a))
BOTH(ul2f, B((float)a))
BOTH(l2d, B((double)(i64)a))
BOTH(ul2d, B((double)a))
BOTH(c2f, B((float)(i8)a + (float)(u8)b + (float)(i16)c))
BOTH(f2i, (F(a) > -2e9f && F(a) < 2e9f) ? (u64)(i64)(i32)F(a) : 0)
BOTH(f2u, (F(a) > -0.5f && F(a) < 4e9f) ? (u64)(u32)F(a) : 0)
BOTH(f2l, (F(a) > -9e18f && F(a) < 9e18f) ? (u64)(i64)F(a) : 0)
BOTH(d2i, (D(a) > -2e9 && D(a) < 2e9) ? (u64)(i64)(i32)D(a) : 0)
BOTH(d2ul, (D(a) >= 0 && D(a) < 1.8e19) ? (u64)D(a) : 0)
BOTH(copysgn, B(copysignf(F(a), F(b))))
BOTH(isn, (u64)(F(a) != F(a)) | (u64)(fabsf(F(a)) == INFINITY) << 1)
BOTH(sw, sw((u32)a % 13, (u32)b))
BOTH(loopbrk, loopbrk((u32)a, (u32)b, (u32)c))
BOTH(nest, nest((u32)a, (u32)b))
BOTH(localarr, localarr((u32)a, (u32)b, (u32)c))
BOTH(un, un((u32)a, (u32)b))
BOTH(structs, structs(a, b, c))
BOTH(collatz, collatz((u32)a % 1000 + 1))
BOTH(gcd_, gcd_((u32)a % 100000, (u32)b % 100000))
BOTH(lcg, lcg((u32)a, (u32)b % 100))
BOTH(shortcirc, (u64)(((a & 1) && ((b & 1) || (c & 1))) + 2 * ((a & 2) || ((b & 2) && (c & 2)))))
BOTH(gotos, gotos((u32)a, (u32)b))
BOTH(early, early((u32)a, (u32)b))
BOTH(call2, call2((u32)a, (u32)b) ^ call2((u32)b, (u32)c))
BOTH(hash64, hash64(a, b))
BOTH(bytes, bytes(a, b))
BOTH(dowh, dowh((u32)a, (u32)b))
BOTH(swfall, swfall((u32)a % 9, (u32)b))
BOTH(lookup_, lookup((u32)a, (u32)b))
BOTH(u8loop, u8loop((u8)a, (u8)b))
BOTH(i16arr, i16arr((u32)a, (u32)b))
BOTH(fexpr, B(fexpr(F(a), F(b), F(c))))
