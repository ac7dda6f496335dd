import Foundation

/// What a target says in its `connect-codegen.json`. All paths are relative to the folder of that file.
struct Configuration: Decodable {
  static let fileName = "connect-codegen.json"

  /// Where imports begin, as protoc's `-I`. The files to generate are below one of these.
  var protoRoots: [String] = ["."]
  /// The proto files to generate, relative to a root; nil for all below the roots.
  var files: [String]?
  /// More folders to find imports in, of which nothing is generated.
  var importPaths: [String] = []
  /// The protoc to run; nil for that of the environment.
  var protocPath: String?
  /// Where the command plugin writes; nil if this target is none of its.
  var output: String?
  /// Whether to generate the Swift messages.
  var messages = true
  /// Whether to generate interfaces and clients.
  var stubs = true
  /// Whether to generate mocks.
  var mocks = false
  /// Of the generators of stubs and mocks. Those that protoc-gen-swift has, too, are also given to that.
  var options: [String: OptionValue] = [:]
  /// Of protoc-gen-swift alone.
  var messageOptions: [String: OptionValue] = [:]

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case protoRoots, files, importPaths, protocPath, output, messages, stubs, mocks, options, messageOptions
  }

  /// A key of any name, to find those that do not exist.
  private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let names = CodingKeys.allCases.map(\.rawValue)
    for key in try decoder.container(keyedBy: AnyKey.self).allKeys where !names.contains(key.stringValue) {
      throw PluginError("there is no '\(key.stringValue)', only \(names.joined(separator: ", "))")
    }
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func read<Value: Decodable>(_ key: CodingKeys, into value: inout Value) throws {
      value = try container.decodeIfPresent(Value.self, forKey: key) ?? value
    }
    try read(.protoRoots, into: &self.protoRoots)
    self.files = try container.decodeIfPresent([String].self, forKey: .files)
    try read(.importPaths, into: &self.importPaths)
    self.protocPath = try container.decodeIfPresent(String.self, forKey: .protocPath)
    self.output = try container.decodeIfPresent(String.self, forKey: .output)
    try read(.messages, into: &self.messages)
    try read(.stubs, into: &self.stubs)
    try read(.mocks, into: &self.mocks)
    try read(.options, into: &self.options)
    try read(.messageOptions, into: &self.messageOptions)
  }

  /// - Throws: ``PluginError`` that names the file, and the line and column if it is not JSON.
  init(contentsOf url: URL) throws {
    do {
      let data = try Data(contentsOf: url)
      // JSONDecoder does not say where.
      if let problem = JSONProblem(in: data) { throw PluginError("is not JSON: \(problem)") }
      self = try JSONDecoder().decode(Configuration.self, from: data)
    } catch {
      throw PluginError("\(url.path): \(error)")
    }
  }
}

/// The value of an option, or its values if it may be given more than once.
enum OptionValue: Decodable {
  case one(String)
  case several([String])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let value = try? container.decode(Bool.self) {
      self = .one("\(value)")
    } else if let values = try? container.decode([String].self) {
      self = .several(values)
    } else {
      self = .one(try container.decode(String.self))
    }
  }

  var values: [String] {
    switch self {
    case .one(let value): [value]
    case .several(let values): values
    }
  }
}

/// Why a plugin cannot generate, for people.
struct PluginError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
