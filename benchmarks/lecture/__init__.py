"""Every system of the lecture, trained on the same data under the same budget: quality, and the cost of each."""
