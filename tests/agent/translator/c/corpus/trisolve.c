void trisolve(int n, const double *L, const double *b, double *x) { for (int i = 0; i < n; i++) { double s = b[i]; for (int j = 0; j < i; j++) s -= L[i*n+j]*x[j]; x[i] = s / L[i*n+i]; } }
