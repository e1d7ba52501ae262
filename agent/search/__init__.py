"""Search over several branches of turns, with one budget: which turns to make next, and from which.

`options` is what is asked for, `strategies` choose (from the trajectory alone, so that a run can go on from
its record), `engine` makes the turns, independent ones side by side, `lanes` judges them, `duplicates` says
which candidates are the same.
"""
