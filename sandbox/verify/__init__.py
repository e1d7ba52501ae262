"""Whether outputs are right: pure functions over bytes and numpy arrays, no process, no file.

The rule, for every floating-point output of every draw, with truth in float64 and `native` being the
reference in its own precision:

    error_max = max |got - truth| / scale        scale = max over elements of |truth| and response / eps
    error_l2  = ||got - truth|| / ||truth||      error_row = the largest error_l2 of any row
    allowed   = max(2 * the same error of native, 4 * eps * sqrt(reduction length))

`response` is how far the truth moves when the inputs move by one unit of rounding; it enters every norm, so
that a sum that cancels to almost nothing is measured against what was summed. A tolerance given by the user
replaces `allowed`. NaN and infinities must stand where the reference has them. Integers are exact.
"""

from sandbox.verify.conclude import judge, verify

__all__ = ["judge", "verify"]
