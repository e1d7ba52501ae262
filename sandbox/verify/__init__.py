"""Whether outputs are right: pure functions over bytes and numpy arrays, no process, no file.

The rule, for every floating-point output of every draw, with truth in float64 and `native` being the
reference in its own precision:

    error_max = max |got - truth| / scale        scale = max over elements of |truth| and response / eps
    error_l2  = ||got - truth|| / ||truth||      error_row = the largest error_l2 of any row
    allowed   = max(2 * the same error of native, 4 * eps * sqrt(reduction length))

`response` is how far the truth moves when the inputs move by one unit of rounding; it enters every norm, so
that a sum that cancels to almost nothing is measured against what was summed. A tolerance given by the user
replaces `allowed`. NaN and infinities must stand where the reference has them. One exception: where the
reference itself ends in NaN or infinity although the truth fits its type (it divided by a difference that
rounds to zero), the element is not judged, and these may be at most 1/32 of an output. Integers are exact.
"""

from sandbox.verify.conclude import first_fault, judge, verify

__all__ = ["first_fault", "judge", "verify"]
