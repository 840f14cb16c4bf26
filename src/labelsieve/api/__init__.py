"""What Python programs use: `NoisyLabelClassifier` and `find_label_issues`, both reached from `labelsieve` itself."""
