# Writes the tables of the comparison as CSV files: Rscript tables.R FOLDER
folder <- commandArgs(TRUE)[1]
suppressMessages({library(lme4); library(mlmRev); library(MASS)})
put <- function(name, target, agent, columns, offset = NULL) {
  table <- data.frame(y = as.numeric(target), agent = as.character(agent))
  if (!is.null(offset)) table$offset <- offset
  write.csv(na.omit(cbind(table, columns)), file.path(folder, paste0(name, ".csv")), row.names = FALSE)
}
one <- cbpp[rep(seq_len(nrow(cbpp)), cbpp$size), ]
sick <- unlist(mapply(function(k, n) rep(c(1, 0), c(k, n - k)), cbpp$incidence, cbpp$size))
put("cbpp", sick, one$herd, data.frame(period = paste0("p", one$period)))
put("verbagg", VerbAgg$r2 == "Y", VerbAgg$id,
    data.frame(anger = VerbAgg$Anger, VerbAgg[c("Gender", "btype", "situ", "mode")]))
put("contraception", Contraception$use == "Y", Contraception$district,
    data.frame(livch = paste0("l", Contraception$livch), Contraception[c("age", "urban")]))
ticks <- data.frame(height = grouseticks$HEIGHT, year = paste0("y", grouseticks$YEAR))
put("grouseticks", grouseticks$TICKS > 0, grouseticks$BROOD, ticks)
put("grouseticks-count", grouseticks$TICKS, grouseticks$BROOD, ticks)
seizures <- epil[c("trt", "base", "age", "V4", "period")]
put("epil", epil$y > 4, epil$subject, seizures)
put("epil-count", epil$y, epil$subject, seizures)
put("mmmec-count", Mmmec$deaths, Mmmec$region, data.frame(uvb = Mmmec$uvb), log(Mmmec$expected))
