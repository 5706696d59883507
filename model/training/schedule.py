"""Learning-rate schedule: warm up, hold, decay (Hägele et al. 2024)."""


def learning_rate_factor(step: int, warmup_steps: int, decay_steps: int, max_steps: int) -> float:
    """Return the share of the peak rate at `step`: a linear rise at first, a linear fall to zero at the end.

    The rate is constant in between, so a run can be resumed with another max_steps before its decay begins.
    """
    rise = (step + 1) / warmup_steps
    fall = (max_steps - step) / decay_steps
    return max(0.0, min(1.0, rise, fall))
