internal import Connect
internal import Foundation
internal import NIOCore

/// An installed compiler for proto files.
struct ProtoCompiler {
  enum Kind: String, CaseIterable {
    case protoc
    case buf
  }

  let kind: Kind
  let path: String

  /// The first compiler that is in a folder of `PATH`.
  static func find(
    in folders: String = ProcessInfo.processInfo.environment["PATH"] ?? ""
  ) throws(ConnectError) -> ProtoCompiler {
    for kind in Kind.allCases {
      for folder in folders.split(separator: ":") {
        let path = "\(folder)/\(kind.rawValue)"
        if FileManager.default.isExecutableFile(atPath: path) { return ProtoCompiler(kind: kind, path: path) }
      }
    }
    throw ConnectError(
      code: .failedPrecondition,
      message: "proto files need a compiler, and neither protoc nor buf is in the PATH: install protoc "
        + "(Debian: apt-get install protobuf-compiler; macOS: brew install protobuf), or give a descriptor set"
    )
  }

  /// - Returns: A `google.protobuf.FileDescriptorSet` with all imports.
  /// - Throws: ``ConnectError``; with `canceled` if the task is cancelled.
  func compile(_ files: [String], importPaths: [String]) async throws -> ByteBuffer {
    do {
      return try await self.run(files, importPaths: importPaths)
    } catch {
      // Other errors are those of files and folders.
      throw ConnectError(error, code: .failedPrecondition)
    }
  }

  private func run(_ files: [String], importPaths: [String]) async throws -> ByteBuffer {
    guard !files.isEmpty else {
      throw ConnectError(code: .invalidArgument, message: "no proto files to compile")
    }
    for file in files where !FileManager.default.fileExists(atPath: file) {
      let isBelowImportPath = importPaths.contains {
        FileManager.default.fileExists(atPath: "\($0)/\(file)")
      }
      if !isBelowImportPath { throw ConnectError(code: .notFound, message: "there is no file \(file)") }
    }
    let folder = FileManager.default.temporaryDirectory.appending(path: "connect-protos-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder,
      withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700]
    )
    defer { try? FileManager.default.removeItem(at: folder) }
    let output = folder.appending(path: "set.binpb")
    let arguments = self.arguments(
      files,
      importPaths: importPaths,
      output: output.path(percentEncoded: false)
    )
    let result = try await ChildProgram(self.path, arguments).run()
    guard result.isSuccess else {
      throw ConnectError(code: .invalidArgument, message: "\(self.kind.rawValue): \(result.errors)")
    }
    return ByteBuffer(bytes: try Data(contentsOf: output))
  }

  /// buf accepts one folder, its workspace: the import path that contains the files.
  func arguments(_ files: [String], importPaths: [String], output: String) -> [String] {
    let paths = importPaths.isEmpty ? Self.importPaths(for: files) : importPaths
    // A path must not look like an option.
    let files = files.map { $0.hasPrefix("-") ? "./\($0)" : $0 }
    switch self.kind {
    case .protoc:
      return ["--include_imports", "--include_source_info", "--descriptor_set_out=\(output)"]
        + paths.map { "--proto_path=\($0)" } + files
    case .buf:
      let input = paths.first { path in files.contains { $0.hasPrefix("\(path)/") } } ?? paths.first ?? "."
      return ["build", input, "--as-file-descriptor-set", "--output", output]
        + files.flatMap { file in
          ["--path", FileManager.default.fileExists(atPath: file) ? file : "\(input)/\(file)"]
        }
    }
  }

  private static func importPaths(for files: [String]) -> [String] {
    var paths = ["."]
    for file in files where file.hasPrefix("/") || file.hasPrefix("../") {
      let folder = URL(filePath: file).deletingLastPathComponent().path(percentEncoded: false)
      if !paths.contains(folder) { paths.append(folder) }
    }
    return paths
  }
}
