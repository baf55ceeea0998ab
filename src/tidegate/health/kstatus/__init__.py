"""Health as Flux judges it: kstatus, with Flux's own rule for Jobs.

Takes an object as it lives, gives a verdict. Knows no cluster; the one rule that needs the time is
handed it.
"""

from tidegate.health.kstatus.judge import judge, judge_with_pods, look_again

__all__ = ["judge", "judge_with_pods", "look_again"]
