"""GRPO with hint distillation and teacher replay, on TRL's trainer."""
