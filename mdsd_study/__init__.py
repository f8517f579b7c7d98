"""The study: measurements, their statistics, and what is written down of them."""
