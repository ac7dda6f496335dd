internal import Connect
internal import SwiftProtobuf

/// Sorts files so that imports stand in front of the files that need them.
enum FileOrder {
  typealias File = Google_Protobuf_FileDescriptorProto

  private enum Step {
    case visit(Int)
    case add(Int)
  }

  /// Otherwise keeps the given order, with each file once. Imports that are not among the files are skipped.
  static func importsFirst(_ files: [File]) throws(ConnectError) -> [File] {
    var numbers: [String: Int] = [:]
    for (number, file) in files.enumerated() {
      guard let other = numbers[file.name] else {
        numbers[file.name] = number
        continue
      }
      guard files[other] == file else {
        throw ConnectError(code: .invalidArgument, message: "two files are named \(file.name)")
      }
    }
    var sorted: [File] = []
    var isOpen: Set<Int> = []
    var isDone: Set<Int> = []
    // Without recursion: a server may name a long chain of imports.
    for number in files.indices {
      var steps = [Step.visit(number)]
      while let step = steps.popLast() {
        switch step {
        case .add(let number):
          isOpen.remove(number)
          isDone.insert(number)
          sorted.append(files[number])
        case .visit(let number):
          if isDone.contains(number) || numbers[files[number].name] != number { continue }
          guard isOpen.insert(number).inserted else {
            throw ConnectError(
              code: .invalidArgument,
              message: "\(files[number].name) imports itself, or what imports it"
            )
          }
          steps.append(.add(number))
          for name in Set(files[number].dependency).sorted().reversed() {
            if let imported = numbers[name], !isDone.contains(imported) { steps.append(.visit(imported)) }
          }
        }
      }
    }
    return sorted
  }
}
