"""Learning-rate schedule: warm up, hold, decay (Hägele et al. 2024)."""


def learning_rate_factor(step: int, warmup_steps: int, decay_steps: int, max_steps: int) -> float:
    """Share of the peak rate at `step`: a linear rise over the first, a linear fall to zero over the last steps.

    The rate is held in between, so a run can be resumed with another max_steps as long as its decay has not begun.
    """
    rise = (step + 1) / warmup_steps
    fall = (max_steps - step) / decay_steps
    return max(0.0, min(1.0, rise, fall))
