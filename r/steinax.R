# Posterior means and standard deviations with a smaller Monte Carlo error, in R: source("steinax.R").
#
# The scores come from CmdStan's diagnostic files, so sample with
#   fit <- model$sample(data, save_latent_dynamics = TRUE, sig_figs = 16, output_dir = "output")
#   summarise_draws_cv(fit$draws(), "output")
# The work is done by the program `steinax`, a Python package; posterior and jsonlite are needed here.

#' Controlled means and standard deviations of all parameters in CmdStan's files.
#'
#' @param files Paths of CSV files of draws and diagnostics, of their folder, or of a file of `steinax convert`.
#' @param variables Names of variables or of elements, such as "tau" or "theta[1]"; all by default.
#' @param command The program: its name, or its path if it is not found, such as "~/venv/bin/steinax".
#' @return A data frame with a row for each parameter: `variable`, `mean_cv`, `mcse_mean_cv`, `sd_cv`, `mcse_sd_cv`,
#'   `worth`, how many times as many draws the plain mean would need, and `plain_mean`. Elements count from 1, as in Stan.
read_cv <- function(files, variables = NULL, command = "steinax") {
  if (Sys.which(command) == "") {
    stop("there is no program ", command, ": install the Python package steinax, or give its path as `command`.",
         call. = FALSE)
  }
  asked <- vapply(variables, shifted, character(1), by = -1L)
  told <- c("summary", files, "--json", rbind(rep("--var", length(asked)), asked))
  complaint <- tempfile()
  on.exit(unlink(complaint))
  printed <- suppressWarnings(system2(command, shQuote(told), stdout = TRUE, stderr = complaint))
  if (!is.null(attr(printed, "status"))) {
    stop(counted_from_one(paste(readLines(complaint), collapse = "\n")), call. = FALSE)
  }
  rows <- jsonlite::fromJSON(paste(printed, collapse = "\n"))$parameters
  data.frame(
    variable = vapply(rows$name, shifted, character(1), by = 1L, USE.NAMES = FALSE),
    mean_cv = rows$mean, mcse_mean_cv = rows$mcse_mean,
    sd_cv = rows$sd, mcse_sd_cv = rows$mcse_sd,
    worth = rows$worth, plain_mean = rows$plain_mean
  )
}

#' The summary of posterior::summarise_draws, with the columns of `read_cv` next to the plain ones.
#'
#' @param x Draws in any format of posterior, of the same run as the files.
#' @param files,variables,command As for `read_cv`.
#' @param ... Measures, as for posterior::summarise_draws.
#' @return The draws_summary of `x`; variables that were not asked for or are not the model's, such as `lp__`, get NA.
summarise_draws_cv <- function(x, files, ..., variables = NULL, command = "steinax") {
  table <- posterior::summarise_draws(x, ...)
  controlled <- read_cv(files, variables, command)
  at <- match(table$variable, controlled$variable)
  if (all(is.na(at))) {
    stop("the files have none of the variables of the draws: give the files of the same run.", call. = FALSE)
  }
  own <- posterior::summarise_draws(x, "mean")
  plain <- own$mean[match(controlled$variable, own$variable)]
  error <- abs(plain - controlled$plain_mean) / controlled$sd_cv
  if (any(error > 1e-3, na.rm = TRUE)) {
    stop("the draws have other means than the files, such as ", controlled$variable[which.max(error)],
         ": give the files of the same run.", call. = FALSE)
  }
  controlled$plain_mean <- NULL
  for (column in setdiff(names(controlled), "variable")) table[[column]] <- controlled[[column]][at]
  table
}

# theta[0,1], as Python counts, is theta[1,2] in Stan and in posterior; names of labels stay as they are.
shifted <- function(name, by) {
  parts <- regmatches(name, regexec("^(.*)\\[([0-9, ]+)\\]$", name))[[1]]
  if (length(parts) == 0) return(name)
  index <- as.integer(strsplit(parts[3], ",")[[1]]) + by
  if (any(index < 0)) stop(name, ": elements count from 1.", call. = FALSE)
  paste0(parts[2], "[", paste(index, collapse = ","), "]")
}

# The same in a message, which may name several elements, and files such as out[1].csv, which stay as they are.
counted_from_one <- function(text) {
  at <- gregexpr("\\[[0-9]+(, ?[0-9]+)*\\](?![\\w/\\\\]|\\.\\w)", text, perl = TRUE)
  regmatches(text, at) <- lapply(regmatches(text, at), function(found) {
    vapply(found, shifted, character(1), by = 1L, USE.NAMES = FALSE)
  })
  gsub("count from 0", "count from 1", text, fixed = TRUE)
}
