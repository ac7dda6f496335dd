internal import Connect

/// What deviates from the boring schedule: the numbers of choices, and which option was taken there.
struct Schedule: Sendable, Hashable {
  struct Deviation: Sendable, Hashable {
    /// The number of the choice, from 0.
    var choice: Int
    /// The option, from 1. Option 0 is the boring one.
    var option: Int
  }

  /// What all calls call.
  var method: StreamType
  /// In the order of their choices, each of which is there once.
  var deviations: [Deviation] = []

  init(method: StreamType, deviations: [Deviation] = []) {
    self.method = method
    self.deviations = deviations
  }
}

extension Schedule: CustomStringConvertible {
  /// For example `unary 3:2 17:1`.
  var description: String {
    ([self.method.explorerName] + self.deviations.map { "\($0.choice):\($0.option)" }).joined(separator: " ")
  }

  /// - Throws: ``ExplorerScheduleError`` if `text` is none of a schedule, or its method is none of the explorer's.
  init(parsing text: String, methods: [StreamType]) throws(ExplorerScheduleError) {
    // Mails and terminals wrap lines.
    let words = text.split(whereSeparator: \.isWhitespace)
    guard let method = methods.first(where: { $0.explorerName == words.first ?? "" }) else {
      let all: [StreamType] = [.unary, .clientStream, .serverStream, .bidirectionalStream]
      let reason =
        if let name = all.first(where: { $0.explorerName == words.first ?? "" })?.explorerName {
          "it is one of \(name) calls, which the explorer does not make: it needs .methods([.\(name)])"
        } else {
          "it has to begin with a method of the explorer: "
            + methods.map(\.explorerName).joined(separator: ", ")
        }
      throw ExplorerScheduleError(text: text, reason: reason)
    }
    self.init(method: method)
    for word in words.dropFirst() {
      let numbers = word.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
      guard numbers.count == 2, let choice = numbers[0], let option = numbers[1], option >= 1,
        choice > self.deviations.last?.choice ?? -1
      else {
        throw ExplorerScheduleError(
          text: text,
          reason: "“\(word)” is not a choice and its option, as in 3:2, in rising order"
        )
      }
      self.deviations.append(Deviation(choice: choice, option: option))
    }
  }
}

/// The text of a schedule cannot be read. Copy it again from the printed test.
public struct ExplorerScheduleError: Error, CustomStringConvertible {
  let text: String
  let reason: String

  public var description: String { "“\(self.text)” is not a schedule: \(self.reason)" }
}

extension StreamType {
  var explorerName: String {
    switch self {
    case .unary: "unary"
    case .clientStream: "clientStream"
    case .serverStream: "serverStream"
    case .bidirectionalStream: "bidirectionalStream"
    }
  }
}
