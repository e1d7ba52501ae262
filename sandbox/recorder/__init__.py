"""Recording what a candidate's host code asks the device to do: the launch plan.

`runtime/` is our `libcudart.so.13`, `harness/` the program that calls `launch` against it inside the jail,
and `client` the door from Python.
"""
