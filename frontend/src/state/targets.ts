/** Data-sheet peaks, only for the roofline's roof. Where a target is not listed, no roofline is drawn. */
export interface Peaks {
  board: string;
  /** Bytes per second of device memory. */
  bandwidth: number;
  /** fp32 operations per second, an fma counted as two. */
  fp32: number;
}

const PEAKS: Record<string, Peaks> = {
  sm_70: { board: "V100", bandwidth: 0.9e12, fp32: 15.7e12 },
  sm_75: { board: "T4", bandwidth: 0.32e12, fp32: 8.1e12 },
  sm_80: { board: "A100 80 GB", bandwidth: 2.04e12, fp32: 19.5e12 },
  sm_86: { board: "RTX 3090", bandwidth: 0.936e12, fp32: 35.6e12 },
  sm_89: { board: "RTX 4090", bandwidth: 1.01e12, fp32: 82.6e12 },
  sm_90: { board: "H200", bandwidth: 4.8e12, fp32: 67e12 },
  sm_100: { board: "B200", bandwidth: 8.0e12, fp32: 75e12 },
  sm_120: { board: "RTX 5090", bandwidth: 1.79e12, fp32: 104.8e12 },
};

export function peaks(target: string): Peaks | null {
  return PEAKS[target.replace(/[af]$/, "")] ?? null;
}
