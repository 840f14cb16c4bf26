"""What a finished run can be handed on as: models for other runtimes, labels for other tools. Plain files, models checked."""
