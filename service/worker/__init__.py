"""The program of a loader and its workers: it loads models, forks, computes and answers. No server imports it."""
