"""What is whole in the folder of a run or of a study, and what is damaged."""
