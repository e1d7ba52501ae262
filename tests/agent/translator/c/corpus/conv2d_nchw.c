void conv2d_nchw(int batch, int cin, int h, int w, int cout, int ks, const float *x, const float *wt, const float *bias,
                 float *y) {
    int oh = h - ks + 1, ow = w - ks + 1;
    for (int b = 0; b < batch; b++)
        for (int co = 0; co < cout; co++)
            for (int i = 0; i < oh; i++)
                for (int j = 0; j < ow; j++) {
                    float acc = bias[co];
                    for (int ci = 0; ci < cin; ci++)
                        for (int u = 0; u < ks; u++)
                            for (int v = 0; v < ks; v++)
                                acc += x[((b * cin + ci) * h + i + u) * w + j + v] * wt[((co * cin + ci) * ks + u) * ks + v];
                    y[((b * cout + co) * oh + i) * ow + j] = acc;
                }
}
