"""The GPU backend: launch plans replayed on a real card, by a process that holds no candidate's host code.

`devices` lists the cards and says whether they are well, `lease` hands one out at a time, `client` starts
the replaying process in a jail and talks to it. `worker` is that process: `driver` (CUDA's driver API),
`memory` (the device's range, guards, poison), `plans` (one operation after another) and `clock` (timing).
The worker's modules know nothing of the rest of this package, so that it starts fast.
"""
