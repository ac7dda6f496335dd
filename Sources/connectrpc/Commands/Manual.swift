import ArgumentParser
import Foundation

/// Prints the manual page, made from the help of all commands; `make install` puts it in place.
struct Manual: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the manual page, in mdoc(7).",
    shouldDisplay: false
  )

  func run() {
    var lines = [
      ".Dd \(Date().formatted(.iso8601.year().month().day()))", ".Dt CONNECTRPC 1", ".Os", ".Sh NAME",
      ".Nm connectrpc",
      ".Nd \(Self.escaped(ConnectRPC.configuration.abstract))", ".Sh SYNOPSIS", ".Nm", ".Ar command",
      ".Op Ar options",
      ".Sh DESCRIPTION", Self.escaped(ConnectRPC.configuration.discussion),
    ]
    for command in ConnectRPC.configuration.subcommands where command.configuration.shouldDisplay {
      lines.append(".Sh \(String(describing: command).uppercased())")
      lines.append(".Bd -literal")
      let help = ConnectRPC.helpMessage(for: command, columns: 78)
      lines += help.split(separator: "\n", omittingEmptySubsequences: false).map { Self.escaped(String($0)) }
      lines.append(".Ed")
    }
    Console.output(lines.joined(separator: "\n"))
  }

  /// A dot at the beginning of a line, and a backslash, have a meaning in mdoc.
  private static func escaped(_ line: String) -> String {
    let text = line.replacing("\\", with: "\\e").replacing("-", with: "\\-")
    return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&\(text)" : text
  }
}
