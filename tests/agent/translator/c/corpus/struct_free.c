typedef struct { double x, y; } vec;
static vec addv(vec a, vec b) { vec r; r.x = a.x + b.x; r.y = a.y + b.y; return r; }
void struct_free(int n, const double *p, double *q) { for (int i = 0; i < n; i++) { vec a, b; a.x = p[2*i]; a.y = p[2*i+1]; b.x = 1; b.y = 2; vec c = addv(a, b); q[2*i] = c.x; q[2*i+1] = c.y; } }
