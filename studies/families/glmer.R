# Predicts the test rows of every split with lme4: Rscript glmer.R FOLDER SPLITS
# FOLDER/K/train.csv and test.csv have the columns y, agent, offset (may be missing) and standardised others.
arguments <- commandArgs(TRUE)
suppressMessages(library(lme4))
for (k in seq_len(as.integer(arguments[2]))) {
  folder <- file.path(arguments[1], k)
  train <- read.csv(file.path(folder, "train.csv")); test <- read.csv(file.path(folder, "test.csv"))
  train$agent <- factor(train$agent); test$agent <- factor(test$agent)
  columns <- paste(setdiff(names(train), c("y", "agent", "offset")), collapse = " + ")
  text <- paste("y ~", columns, "+ (", columns, "|| agent)", if ("offset" %in% names(train)) "+ offset(offset)")
  model <- suppressWarnings(suppressMessages(glmer(as.formula(text), train, family = poisson)))
  mean <- predict(model, test, type = "response", allow.new.levels = TRUE)
  write.csv(data.frame(mean = mean), file.path(folder, "glmer.csv"), row.names = FALSE)
}
